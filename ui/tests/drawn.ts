// What charts are told to draw, kept instead of drawn: there is no canvas here. A test looks at it, and clicks on it.
interface Series {
  data?: readonly unknown[];
}

export interface DrawnOption {
  series?: readonly Series[];
}

class Drawn {
  option: DrawnOption = {};
  #clicked: ((event: { data?: unknown }) => void) | null = null;

  constructor(readonly element: HTMLElement) {}

  setOption(option: DrawnOption): void {
    this.option = option;
  }

  on(_: "click", listener: (event: { data?: unknown }) => void): void {
    this.#clicked = listener;
  }

  /** Click on the first thing drawn that is like this. */
  click(isIt: (data: Record<string, unknown>) => boolean): void {
    const all = (this.option.series ?? []).flatMap((one) => one.data ?? []);
    const data = all.find((one): one is Record<string, unknown> => typeof one === "object" && one !== null && isIt(one as Record<string, unknown>));
    if (data === undefined) throw new Error("nothing like that is drawn");
    this.#clicked?.({ data });
  }

  resize(): void {
    // As large as ever.
  }

  dispose(): void {
    drawn.delete(this);
  }
}

const drawn = new Set<Drawn>();

/** In the place of the chart library's own. */
export function init(element: HTMLElement): Drawn {
  const made = new Drawn(element);
  drawn.add(made);
  return made;
}

export function chartAt(element: HTMLElement): Drawn | undefined {
  return [...drawn].find((one) => one.element === element);
}
