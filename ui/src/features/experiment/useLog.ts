// Follows a job's log while it grows, and saves all of it as a file.
import { useEffect, useState } from "react";

import { ApiError, saveBlob, sendRequest } from "@/api/client";

const WAIT_S = 20;
const PAUSE_MS = 1000;
// Enough to read, and no more than a page can hold.
export const MOST_CHARACTERS = 400_000;

export interface LogWanted {
  jobId: string;
  /** Only lines that hold this text. */
  find: string;
  /** Only lines of this source. */
  source: string;
}

export interface FollowedLog {
  text: string;
  /** There was more before it than is kept here. */
  isShortened: boolean;
  ended: boolean;
  isCut: boolean;
  error: unknown;
}

const NOTHING: FollowedLog = { text: "", isShortened: false, ended: false, isCut: false, error: null };

interface Piece {
  text: string;
  next: string;
  ended: boolean;
}

async function readPiece(
  { jobId, find, source }: LogWanted,
  offset: string,
  waitS: number,
  signal?: AbortSignal,
): Promise<Piece> {
  const query = new URLSearchParams({ offset, wait_s: String(waitS) });
  if (find) query.set("search", find);
  if (source) query.set("source", source);
  const path = `/api/v1/jobs/${encodeURIComponent(jobId)}/logs?${query.toString()}`;
  const response = await sendRequest(new Request(new URL(path, location.origin), signal ? { signal } : {}));
  return {
    text: await response.text(),
    next: response.headers.get("Prony-Next-Offset") ?? offset,
    ended: response.headers.get("Prony-Ended") === "true",
  };
}

export function useLog({ jobId, find, source }: LogWanted): FollowedLog {
  const [log, setLog] = useState(NOTHING);
  useEffect(() => {
    const stop = new AbortController();
    const followLog = async (): Promise<void> => {
      let offset = "0";
      while (!stop.signal.aborted) {
        try {
          const piece = await readPiece({ jobId, find, source }, offset, WAIT_S, stop.signal);
          offset = piece.next;
          setLog((before) => addPiece(before, piece));
          if (piece.ended) return;
        } catch (caught) {
          if (!isTransient(caught)) throw caught;
          setLog((before) => ({ ...before, isCut: true }));
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
      }
    };
    followLog().catch((error: unknown) => {
      if (!stop.signal.aborted) setLog((before) => ({ ...before, error }));
    });
    return () => stop.abort();
  }, [jobId, find, source]);
  return log;
}

function addPiece(before: FollowedLog, piece: Piece): FollowedLog {
  const whole = before.text + piece.text;
  const isLong = whole.length > MOST_CHARACTERS;
  // From the beginning of a line on.
  const text = isLong ? whole.slice(whole.indexOf("\n", whole.length - MOST_CHARACTERS) + 1) : whole;
  return { ...before, text, isShortened: before.isShortened || isLong, ended: piece.ended, isCut: false };
}

/** Save the log as far as it goes now, whole, as a file. */
export async function saveLog(jobId: string): Promise<void> {
  const wanted = { jobId, find: "", source: "" };
  const pieces: string[] = [];
  let offset = "0";
  for (;;) {
    const piece = await readPiece(wanted, offset, 0);
    if (piece.text) pieces.push(piece.text);
    if (piece.ended || piece.next === offset) break;
    offset = piece.next;
  }
  saveBlob(new Blob(pieces, { type: "text/plain" }), `${jobId}.log`);
}

/** A server that is gone or begins anew may come back and go on where it was; a refusal stays one. */
function isTransient(error: unknown): boolean {
  return error instanceof ApiError ? error.status === 0 || error.status >= 500 : error instanceof TypeError;
}
