// Reads an event stream with fetch, so that the token can be sent along.
import { sendRequest } from "./client";

export interface StreamEvent {
  id: string;
  event: string;
  data: string;
}

export async function* streamEvents(path: string, signal: AbortSignal, lastId = ""): AsyncGenerator<StreamEvent> {
  const headers = new Headers({ Accept: "text/event-stream" });
  if (lastId) headers.set("Last-Event-ID", lastId);
  const response = await sendRequest(
    new Request(new URL(path, location.origin), { headers, signal, cache: "no-store" }),
  );
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Read one block of a stream; a comment alone is no event. */
export function parseEvent(block: string): StreamEvent | null {
  const found: StreamEvent = { id: "", event: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (!line || line.startsWith(":")) continue;
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "event") found.event = value;
    else if (name === "id") found.id = value;
  }
  if (data.length === 0) return null;
  return { ...found, data: data.join("\n") };
}
