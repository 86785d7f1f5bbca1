// The page for an address that does not exist.
import { Link } from "@tanstack/react-router";

import { Missing } from "@/components/states";

export function NotFound() {
  return (
    <Missing
      title="Page not found"
      back={
        <Link to="/" className="button">
          To the overview
        </Link>
      }
    />
  );
}
