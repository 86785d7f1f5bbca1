import { describe, expect, it } from "vitest";

import { digestBlob, packTar } from "./tar";

async function readHeader(blob: Blob): Promise<Uint8Array> {
  return new Uint8Array(await blob.arrayBuffer()).slice(0, 512);
}

describe("a tar", () => {
  it("has a header with a right sum, the file in whole blocks, and two empty blocks at the end", async () => {
    const tar = packTar([{ name: "result.json", content: new Blob(["hello"]) }]);
    expect(tar.size).toBe(512 + 512 + 1024);
    const header = await readHeader(tar);
    const text = new TextDecoder().decode(header);
    expect(text.slice(0, 11)).toBe("result.json");
    expect(text.slice(124, 135)).toBe("00000000005");
    const blank = header.map((byte, place) => (place >= 148 && place < 156 ? 32 : byte));
    expect(parseInt(text.slice(148, 154), 8)).toBe(blank.reduce((sum, byte) => sum + byte, 0));
  });

  it("splits a long name at a slash, and refuses one that does not fit", async () => {
    const folder = "f".repeat(120);
    const header = new TextDecoder().decode(await readHeader(packTar([{ name: `${folder}/a`, content: new Blob() }])));
    expect(header.slice(0, 2)).toBe("a\0");
    expect(header.slice(345, 465)).toBe(folder);
    expect(() => packTar([{ name: "x".repeat(101), content: new Blob() }])).toThrow("use prony import");
  });

  it("is named by its SHA-256", async () => {
    expect(await digestBlob(new Blob(["abc"]))).toBe(
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
  });
});
