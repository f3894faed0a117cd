// Makes text from a trace safe to show: characters that move, hide or reorder text are replaced by
// visible escapes.

const SEQUENCE = new RegExp(
  [
    String.raw`\x1b\[[0-?]*[ -/]*[@-~]`, // a control sequence, such as a colour
    String.raw`\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?`, // a string, such as a window title
    String.raw`\x1b[ -/]*[0-~]`, // any other escape sequence
    String.raw`\x9b[0-?]*[ -/]*[@-~]`, // a control sequence of eight bits
  ].join("|"),
  "gu",
);
const ACTING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** The text with control characters made visible. */
export function plain(text: string): string {
  return text.replace(SEQUENCE, "").replace(ACTING, escaped);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code <= 0xff) return SHORT[character] ?? `\\x${digits.padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

/** Splits a sentence into words and names in backticks. */
export function pieces(text: string): { text: string; isName: boolean }[] {
  const parts = plain(text).split("`");
  const isOpen = parts.length % 2 === 0; // a backtick without its partner quotes nothing
  const found = parts.map((part, at) => ({ text: part, isName: at % 2 === 1 }));
  const last = found.at(-1);
  if (isOpen && last !== undefined) found.splice(-1, 1, { text: `\`${last.text}`, isName: false });
  return found.filter((piece) => piece.text !== "");
}
