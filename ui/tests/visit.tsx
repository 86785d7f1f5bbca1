// Opens a page by its address in a test, or renders one part of a page alone.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import { type UserEvent, userEvent } from "@testing-library/user-event";
import type { ReactNode } from "react";

import { routeTree } from "../src/app/routes";
import { Loading } from "../src/components/states";

export interface Visit {
  user: UserEvent;
  client: QueryClient;
  /** Where the person is now, with all that the address holds. */
  address: () => string;
}

function createClient(): QueryClient {
  // No answer is asked for twice unless something says that it is stale: each request of a test has a reason.
  return new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
}

export async function visit(address: string): Promise<Visit> {
  const history = createMemoryHistory({ initialEntries: [address] });
  const router = createRouter({ routeTree, history, defaultPendingComponent: Loading, defaultPendingMinMs: 0 });
  const client = createClient();
  const user = userEvent.setup({ delay: null });
  await router.load();
  render(
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  );
  return { user, client, address: () => router.state.location.href };
}

/** Show one part, which may hold links: they lead nowhere here, and `address` tells where they would. */
export async function showPart(part: ReactNode): Promise<Visit> {
  const history = createMemoryHistory({ initialEntries: ["/"] });
  const root = createRootRoute({ component: () => part, notFoundComponent: () => part });
  const router = createRouter({ routeTree: root, history });
  const client = createClient();
  const user = userEvent.setup({ delay: null });
  await router.load();
  render(
    <QueryClientProvider client={client}>
      <RouterProvider router={router as never} />
    </QueryClientProvider>,
  );
  return { user, client, address: () => router.state.location.href };
}
