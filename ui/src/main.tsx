// Starts the application in the page.
import "./theme/tokens.css";
import "./theme/base.css";
import "./theme/components.css";
import "./theme/shell.css";

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ApiError } from "./api/client";
import { listenForChanges } from "./api/live";
import { router } from "./app/routes";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // What changes is told by the stream; a query that is a minute old is asked anew all the same.
      staleTime: 60_000,
      retry: (count, error) => count < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
});
listenForChanges(client);

const place = document.getElementById("root");
if (place)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
