// Shows a report's HTML in a sandboxed frame that can reach neither this page nor the network.
import { useEffect, useRef } from "react";

/** The frame has an origin of its own and a policy of its own; it says when it listens, and is then told the text. */
export function ReportFrame({ text, title }: { text: string; title: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  useEffect(() => {
    const sendText = (event: MessageEvent): void => {
      const there = frame.current?.contentWindow;
      // A frame without an origin can be written to by no other name.
      if (there && event.source === there && event.data === "ready") there.postMessage(text, "*");
    };
    addEventListener("message", sendText);
    return () => removeEventListener("message", sendText);
  }, [text]);
  return <iframe ref={frame} key={text} className="framed" src="/frame.html" sandbox="allow-scripts" title={title} />;
}
