// A link to what the server shows beside these pages. The browser has only its own error page for it while the server is
// away, so the server is asked first.
import type { AnchorHTMLAttributes, MouseEvent } from "react";

import { isServerThere } from "@/api/client";

import { showToast } from "./toasts";

export function ServerLink({ href, ...props }: { href: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const open = async (): Promise<void> => {
    if (await isServerThere()) location.assign(href);
    else showToast("The server does not answer. Try again when it is back.", true);
  };
  const onClick = (event: MouseEvent): void => {
    // Another tab or window may show what it likes: this page stays.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void open();
  };
  return <a {...props} href={href} onClick={onClick} />;
}
