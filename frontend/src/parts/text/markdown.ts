// Parses the Markdown of selftime's own pages; nothing in it becomes HTML.

export type Inline =
  | { kind: "text" | "code" | "strong" | "emphasis"; text: string }
  | { kind: "link"; text: string; to: string };

export type Block =
  | { kind: "heading"; level: number; text: Inline[] }
  | { kind: "paragraph"; text: Inline[] }
  | { kind: "code"; text: string; language: string }
  | { kind: "list"; ordered: boolean; items: Inline[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] };

const FENCE = /^(`{3,}|~{3,})\s*(\S*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^ {0,3}([-*+]|\d+[.)])\s+(.*)$/;
const DRAWN = /^(?: {4}|\t)/;

export function blocks(text: string): Block[] {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const found: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    if ((lines[at] ?? "").trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] = read(lines, at);
    found.push(block);
    at = next;
  }
  return found;
}

/** The block that begins at a line, and the line behind it. */
function read(lines: readonly string[], at: number): [Block, number] {
  const line = lines[at] ?? "";
  const fence = FENCE.exec(line);
  if (fence !== null) return fenced(lines, at, fence[1] ?? "```", fence[2] ?? "");
  if (DRAWN.test(line)) return drawn(lines, at);
  const heading = HEADING.exec(line);
  if (heading !== null) {
    return [{ kind: "heading", level: heading[1]?.length ?? 1, text: inlines(heading[2] ?? "") }, at + 1];
  }
  if (ITEM.test(line)) return listed(lines, at);
  if (isTable(lines, at)) return tabled(lines, at);
  let end = at + 1;
  while (end < lines.length && !begins(lines, end)) end += 1;
  return [{ kind: "paragraph", text: inlines(joined(lines.slice(at, end))) }, end];
}

/** Whether a line ends the paragraph before it. */
function begins(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? "";
  return line.trim() === "" || FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || isTable(lines, at);
}

function joined(lines: readonly string[]): string {
  return lines.map((line) => line.trim()).join(" ");
}

function fenced(lines: readonly string[], at: number, fence: string, language: string): [Block, number] {
  let end = at + 1;
  while (end < lines.length && !(lines[end] ?? "").startsWith(fence)) end += 1;
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n"), language }, end + 1];
}

function drawn(lines: readonly string[], at: number): [Block, number] {
  let end = at;
  while (end < lines.length && (DRAWN.test(lines[end] ?? "") || (lines[end] ?? "").trim() === "")) end += 1;
  while ((lines[end - 1] ?? "").trim() === "") end -= 1;
  const text = lines.slice(at, end).map((line) => line.replace(DRAWN, "")).join("\n");
  return [{ kind: "code", text, language: "" }, end];
}

function listed(lines: readonly string[], at: number): [Block, number] {
  const ordered = /^\s*\d/.test(lines[at] ?? "");
  const items: string[][] = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? "";
    const item = ITEM.exec(line);
    if (item !== null) items.push([item[2] ?? ""]);
    else if (/^\s+\S/.test(line)) items.at(-1)?.push(line);
    else break;
  }
  return [{ kind: "list", ordered, items: items.map((item) => inlines(joined(item))) }, end];
}

function isTable(lines: readonly string[], at: number): boolean {
  return (lines[at] ?? "").includes("|") && /^\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*$/.test(lines[at + 1] ?? "");
}

function tabled(lines: readonly string[], at: number): [Block, number] {
  let end = at + 2;
  while (end < lines.length && (lines[end] ?? "").includes("|")) end += 1;
  const [head = [], ...rows] = [lines[at] ?? "", ...lines.slice(at + 2, end)].map(row);
  return [{ kind: "table", head, rows }, end];
}

function row(line: string): Inline[][] {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => inlines(cell.trim().replaceAll("\\|", "|")));
}

const INLINE = new RegExp(
  [
    String.raw`(?<fence>${"`"}+)(?<code>.+?)(?<!${"`"})\k<fence>(?!${"`"})`,
    String.raw`\*\*(?<strong>\S(?:.*?\S)?)\*\*`,
    String.raw`(?<![\w*])\*(?<emphasis>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])`,
    String.raw`\[(?<link>[^\]]+)\]\((?<to>[^()\s]+)\)`,
  ].join("|"),
  "g",
);

export function inlines(text: string): Inline[] {
  const found: Inline[] = [];
  let at = 0;
  const say = (words: string) => words !== "" && found.push({ kind: "text", text: words.replace(/\\([!-/:-@[-`{-~])/g, "$1") });
  for (const match of text.matchAll(INLINE)) {
    say(text.slice(at, match.index));
    at = match.index + match[0].length;
    const { code, strong, emphasis, link, to } = match.groups ?? {};
    if (code !== undefined) found.push({ kind: "code", text: code.trim() });
    else if (strong !== undefined) found.push({ kind: "strong", text: strong });
    else if (emphasis !== undefined) found.push({ kind: "emphasis", text: emphasis });
    else found.push({ kind: "link", text: link ?? "", to: to ?? "" });
  }
  say(text.slice(at));
  return found;
}
