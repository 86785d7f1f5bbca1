// The page for an address that does not exist.
import { Link } from "@tanstack/react-router";

import { EmptyState } from "@/components/states";

export function NotFound() {
  return (
    <EmptyState
      title="Page not found"
      actions={
        <Link to="/" className="button">
          To the overview
        </Link>
      }
    >
      <p>It may have been deleted, or the link is incomplete.</p>
    </EmptyState>
  );
}
