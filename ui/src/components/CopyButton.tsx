// A button that copies a text, and says whether it could.
import { useRef, useState } from "react";

/** Copy by the browser's clipboard; pages that came by plain HTTP from another machine have none and select instead. */
async function copyText(text: string, beside: HTMLElement): Promise<boolean> {
  // The types do not know of pages without a clipboard.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  try {
    if (clipboard) {
      await clipboard.writeText(text);
      return true;
    }
  } catch {
    // Not allowed: the other way may be.
  }
  return copySelected(text, beside);
}

/** Select the text in a field beside the button, inside of its dialog, and copy what is selected. */
function copySelected(text: string, beside: HTMLElement): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "unseen";
  beside.after(field);
  field.focus();
  field.select();
  try {
    // There is no other way without a secure connection.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    beside.focus();
  }
}

export function CopyButton({ text, className = "button" }: { text: string; className?: string }) {
  const button = useRef<HTMLButtonElement>(null);
  const [outcome, setOutcome] = useState<"" | "Copied" | "Not copied">("");
  const copy = async (): Promise<void> => {
    if (button.current) setOutcome((await copyText(text, button.current)) ? "Copied" : "Not copied");
  };
  return (
    <>
      <button ref={button} type="button" className={className} onClick={() => void copy()}>
        {outcome === "Copied" ? outcome : "Copy"}
      </button>
      <span role="status" className={outcome === "Not copied" ? "muted small" : "unseen"}>
        {outcome === "Not copied" ? "The browser did not copy it. Select the text and press Ctrl-C." : outcome}
      </span>
    </>
  );
}
