// Formats a job's log for reading: the times of its lines in the reader's zone, its sources in a column.

/** `TIME SOURCE TEXT`, as the server keeps a line. */
const LINE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\S+) /gm;

const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

/** Return the name of the reader's zone and how far it is from UTC: `Europe/Berlin, GMT+1`. */
export function describeZone(at: Date): string {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "longOffset" }).formatToParts(at);
  const offset = parts.find((one) => one.type === "timeZoneName")?.value ?? "";
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return /^GMT(\+00:00)?$/.test(offset) ? name : `${name}, ${offset}`;
}

export interface LogText {
  text: string;
  sources: readonly string[];
  /** Of the first line that has a time; null where none has. */
  day: string | null;
  zone: string;
}

/** Lines of another form, as older logs have, stay as they are. */
export function formatLog(raw: string): LogText {
  const stamps = [...raw.matchAll(LINE)];
  const sources = [...new Set(stamps.map((one) => one[2] ?? ""))];
  const first = stamps[0]?.[1];
  const firstDay = first === undefined ? null : DAY.format(new Date(first));
  const width = Math.max(0, ...sources.map((one) => one.length));
  const text = raw.replace(LINE, (_, at: string, source: string) => {
    const instant = new Date(at);
    const day = DAY.format(instant);
    return `${day === firstDay ? "" : `${day} `}${formatTime(instant)} ${source.padEnd(width)} `;
  });
  return { text, sources, day: firstDay, zone: describeZone(first === undefined ? new Date() : new Date(first)) };
}

function formatTime(instant: Date): string {
  const [hours, minutes, seconds] = [instant.getHours(), instant.getMinutes(), instant.getSeconds()].map(pad);
  return `${hours}:${minutes}:${seconds}.${String(instant.getMilliseconds()).padStart(3, "0")}`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
