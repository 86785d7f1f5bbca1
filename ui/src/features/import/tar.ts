// Packs files into a tar of the plain ustar format, as `prony import` sends folders.

export interface PackedFile {
  /** Below the folder, with slashes. */
  name: string;
  content: Blob;
}

const BLOCK = 512;
const MOST_NAME = 100;
const MOST_FOLDER = 155;

/** Return the tar of these files. The bytes of the files are not copied: the browser reads them while it sends. */
export function packTar(files: readonly PackedFile[]): Blob {
  const parts: BlobPart[] = [];
  for (const { name, content } of files) {
    parts.push(buildHeader(name, content.size), content, new Uint8Array((BLOCK - (content.size % BLOCK)) % BLOCK));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new Blob(parts, { type: "application/x-tar" });
}

/** Return the SHA-256 of what is sent, in hexadecimal digits. */
export async function digestBlob(blob: Blob): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function buildHeader(name: string, size: number): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(BLOCK);
  const [folder, file] = splitName(name);
  const write = (text: string, at: number): void => header.set(new TextEncoder().encode(text), at);
  write(file, 0);
  write("0000644\0", 100);
  write("0000000\0", 108);
  write("0000000\0", 116);
  write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  write("00000000000\0", 136);
  write("        ", 148);
  write("0", 156);
  write("ustar\0", 257);
  write("00", 263);
  write(folder, 345);
  const sum = header.reduce((total, byte) => total + byte, 0);
  write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

/** The format has room for a name of 100 bytes and a folder of 155. */
function splitName(name: string): [folder: string, file: string] {
  const length = (text: string): number => new TextEncoder().encode(text).length;
  if (length(name) <= MOST_NAME) return ["", name];
  const slashes = Array.from(name.matchAll(/\//g), (found) => found.index);
  for (const place of slashes) {
    const [folder, file] = [name.slice(0, place), name.slice(place + 1)];
    if (length(folder) <= MOST_FOLDER && length(file) <= MOST_NAME) return [folder, file];
  }
  throw new Error(`the name of ${name} is too long: use prony import`);
}
