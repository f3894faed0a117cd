// Bundles the page: `node build.mjs --outdir=DIR [--watch]`.

import { build, context } from "esbuild";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";

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
  legalComments: "none", // licences.txt has them whole
  metafile: true,
};

/** The licences of all packages that went into the bundle: they ask to go where the code goes. */
async function licences(inputs) {
  const packages = new Set();
  for (const path of Object.keys(inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (found) packages.add(found[1]);
  }
  const texts = [];
  for (const name of [...packages].sort()) {
    const folder = `node_modules/${name}`;
    const { version } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    const files = (await readdir(folder, { withFileTypes: true }))
      .filter((entry) => entry.isFile() && /licen[cs]e|notice/i.test(entry.name))
      .map((entry) => entry.name);
    if (files.length === 0) throw new Error(`${name} has no licence file`);
    texts.push(`${name} ${version}\n`);
    for (const file of files.sort()) texts.push(await readFile(`${folder}/${file}`, "utf8"));
  }
  return texts.join("\n");
}

await mkdir(outdir, { recursive: true });
await copyFile("src/index.html", `${outdir}/index.html`);
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  const { metafile } = await build(options);
  await writeFile(`${outdir}/licences.txt`, await licences(metafile.inputs));
}
