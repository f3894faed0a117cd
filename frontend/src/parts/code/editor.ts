// The address that opens a line in the reader's editor, or in a repository on the web.

import { isCell } from "../text/place.ts";

export const EDITORS = ["none", "vscode", "pycharm", "own"] as const;
export type Editor = (typeof EDITORS)[number];

export interface EditorSetting {
  editor: Editor;
  /** Of one's own: an address with `{file}` or `{path}`, and `{line}`. */
  pattern: string;
  /** The folder that `{path}` leaves out of a file's path. */
  folder: string;
}

export const NO_EDITOR: EditorSetting = { editor: "none", pattern: "", folder: "" };

export const EDITOR_NAMES: Readonly<Record<Editor, string>> = {
  none: "no editor", vscode: "VS Code", pycharm: "PyCharm", own: "an address of one's own",
};

const PATTERNS: Readonly<Record<Editor, string>> = {
  none: "", vscode: "vscode://file{file}:{line}", pycharm: "pycharm://open?file={file}&line={line}", own: "",
};
/** Schemes of addresses that run what they hold. */
const RUNS = /^(?:javascript|data|vbscript|blob):/i;

/** The setting from its stored words; none if they are not one. */
export function parseSetting(words: string | null): EditorSetting {
  let found: unknown = null;
  try {
    found = JSON.parse(words ?? "null");
  } catch {
    return NO_EDITOR;
  }
  const { editor, pattern, folder } = (found ?? {}) as Partial<Record<string, unknown>>;
  const known = EDITORS.find((one) => one === editor);
  if (known === undefined || typeof pattern !== "string" || typeof folder !== "string") return NO_EDITOR;
  return { editor: known, pattern, folder };
}

/** The address of a line; null if the setting has none for this file. */
export function editorAddress(setting: EditorSetting, file: string, line: number): string | null {
  if (isCell(file)) return null;
  const pattern = setting.editor === "own" ? setting.pattern.trim() : PATTERNS[setting.editor];
  if (!/^[a-z][a-z0-9+.-]*:/i.test(pattern) || RUNS.test(pattern)) return null;
  const path = pathBelow(setting.folder.trim(), file);
  const isAbsolute = /^(?:\/|[a-z]:[\\/])/i.test(file);
  if ((pattern.includes("{path}") && path === null) || (pattern.includes("{file}") && !isAbsolute)) return null;
  const whole = file.startsWith("/") ? file : `/${file.replaceAll("\\", "/")}`; // C:\a.py is /C:/a.py
  return pattern
    .replaceAll("{line}", String(line))
    .replaceAll("{file}", () => encoded(whole))
    .replaceAll("{path}", () => encoded(path ?? ""));
}

/** A path below a folder, with slashes; null if it lies elsewhere. A relative path lies below any. */
function pathBelow(folder: string, file: string): string | null {
  const [above, below] = [folder, file].map((one) => one.replaceAll("\\", "/").replace(/\/$/, "")) as [string, string];
  if (!below.startsWith("/") && !/^[a-z]:\//i.test(below)) return below.replace(/^\.\//, "");
  return below.startsWith(`${above}/`) && above !== "" ? below.slice(above.length + 1) : null;
}

function encoded(path: string): string {
  return path.split("/").map((part) => encodeURIComponent(part)).join("/").replace(/^\/([a-z])%3A/i, "/$1:");
}
