// Stands in for ECharts in tests: keeps the options instead of drawing, as there is no canvas, and simulates clicks.
interface Series {
  data?: readonly unknown[];
}

export interface FakeChartOption {
  series?: readonly Series[];
}

class FakeChart {
  option: FakeChartOption = {};
  #clicked: ((event: { data?: unknown }) => void) | null = null;

  constructor(readonly element: HTMLElement) {}

  setOption(option: FakeChartOption): void {
    this.option = option;
  }

  on(_: "click", listener: (event: { data?: unknown }) => void): void {
    this.#clicked = listener;
  }

  /** Click on the first thing drawn that is like this. */
  click(isIt: (data: Record<string, unknown>) => boolean): void {
    const all = (this.option.series ?? []).flatMap((one) => one.data ?? []);
    const data = all.find(
      (one): one is Record<string, unknown> =>
        typeof one === "object" && one !== null && isIt(one as Record<string, unknown>),
    );
    if (data === undefined) throw new Error("nothing like that is drawn");
    this.#clicked?.({ data });
  }

  /** A picture that is as small as can be. */
  renderToCanvas(): Pick<HTMLCanvasElement, "toBlob"> {
    return { toBlob: (found) => found(new Blob(["a picture"], { type: "image/png" })) };
  }

  resize(): void {
    // As large as ever.
  }

  dispose(): void {
    charts.delete(this);
  }
}

const charts = new Set<FakeChart>();

/** In the place of the chart library's own. */
export function init(element: HTMLElement): FakeChart {
  const made = new FakeChart(element);
  charts.add(made);
  return made;
}

export function findChart(element: HTMLElement): FakeChart | undefined {
  return [...charts].find((one) => one.element === element);
}
