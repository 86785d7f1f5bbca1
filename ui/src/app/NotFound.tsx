// The page for an address that does not exist.
import { Link } from "@tanstack/react-router";

import { EmptyState } from "@/components/states";

export function NotFound() {
  return (
    <EmptyState
      title="There is nothing at this address"
      actions={
        <Link to="/" className="button">
          To the overview
        </Link>
      }
    >
      <p>It may have been deleted, or the link is not whole.</p>
    </EmptyState>
  );
}
