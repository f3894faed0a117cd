// Bundles the page: `node build.mjs --outdir=DIR [--watch]`.

import { build, context } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";

const outdir = process.argv.find((word) => word.startsWith("--outdir="))?.slice(9) ?? "dist";
const options = {
  entryPoints: { app: "src/main.tsx" },
  outdir,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "linked",
};

await mkdir(outdir, { recursive: true });
await copyFile("src/index.html", `${outdir}/index.html`);
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  await build(options);
}
