// A row of tabs that arrow keys move through; the caller keeps the chosen tab in the URL.
import { type KeyboardEvent, type ReactNode, useId } from "react";

export interface Tab<K extends string> {
  key: K;
  label: ReactNode;
}

export function Tabs<K extends string>(props: {
  tabs: readonly Tab<K>[];
  chosen: K;
  onChoose: (key: K) => void;
  label: string;
  children: ReactNode;
}) {
  const { tabs, chosen, onChoose, label, children } = props;
  const id = useId();
  const move = (event: KeyboardEvent<HTMLDivElement>): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = tabs.findIndex((tab) => tab.key === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next.key);
    document.getElementById(`${id}-${next.key}`)?.focus();
  };
  return (
    <div>
      <div className="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.key}
            id={`${id}-${tab.key}`}
            type="button"
            role="tab"
            aria-selected={tab.key === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={tab.key === chosen ? 0 : -1}
            onClick={() => onChoose(tab.key)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} style={{ paddingTop: 16 }}>
        {children}
      </div>
    </div>
  );
}
