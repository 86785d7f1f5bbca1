// The page for an address that does not exist.
import { Link } from "@tanstack/react-router";

import { Missing } from "@/components/states";

export function NotFound() {
  return (
    <Missing
      title="There is nothing at this address"
      back={
        <Link to="/" className="button">
          To the overview
        </Link>
      }
    />
  );
}
