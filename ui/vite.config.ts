// Build settings: the files that `prony server` serves, hashed, each with gzip and brotli versions beside it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const OUT = fileURLToPath(new URL("../src/prony/server/site", import.meta.url));
const COMPRESSED = /\.(js|css|html|svg|json)$/;

function compressFiles(): Plugin {
  return {
    name: "compressed-twins",
    apply: "build",
    closeBundle() {
      for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !COMPRESSED.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        const bytes = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), compressFiles()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: "es2022",
    // Everything by its own URL: the page's policy allows no data in place of a script or a font.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One sheet: the loader of late parts does not ask twice for a sheet that failed while the server was away.
    cssCodeSplit: false,
    chunkSizeWarningLimit: 800,
  },
  server: {
    proxy: {
      "/api": "http://127.0.0.1:7337",
      "/openapi.json": "http://127.0.0.1:7337",
      "/login": "http://127.0.0.1:7337",
      "/logout": "http://127.0.0.1:7337",
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/setup.ts"],
    testTimeout: 30_000,
    isolate: false,
    pool: "threads",
  },
});
