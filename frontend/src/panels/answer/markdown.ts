// The answer as Markdown, to paste into an issue or a pull request: as `as_markdown` in Python writes
// it. `selftime advise --format markdown` is shorter, with a query for each number. Every name is
// quoted, none of them is markup.

import type { Advice, Finding } from "../../api.ts";
import { plain } from "../../parts/plain.ts";
import * as wording from "./wording.ts";

/** Characters of a quoted name; a template's full C++ name tells no more than its two ends. */
const LONGEST = 120;
/** Whatever Markdown, its tables, mentions or embedded HTML would act on within a line. */
const ACTIVE = /[\\*_[\]<>|~&$#@]/g;
/** A blank of no width: code hosts look for people, issues and addresses in what Markdown made. */
const APART = "&#8203;";

export function asMarkdown(advice: Advice, root: string | null = null): string {
  return `${[...lines(advice, root)].join("\n")}\n`;
}

/** One finding alone, with its number in the answer. */
export function findingMarkdown(number: number, finding: Finding, root: string | null = null): string {
  return `${[...findingLines(number, finding, root)].join("\n").trimEnd()}\n`;
}

/** A name as a code span, capped, whatever backticks it holds. */
function quoted(name: string): string {
  const shown = cutMiddle(plain(name));
  let fence = "`";
  while (shown.includes(fence)) fence += "`";
  const pad = shown.startsWith("`") || shown.endsWith("`") || shown.trim() === "" ? " " : "";
  return `${fence}${pad}${shown}${pad}${fence}`;
}

function cutMiddle(text: string): string {
  const characters = [...text];
  if (characters.length <= LONGEST) return text;
  const tail = Math.floor((LONGEST - 1) / 2);
  const head = LONGEST - 1 - tail;
  return `${characters.slice(0, head).join("")}…${characters.slice(-tail).join("")}`;
}

/** A sentence in which nothing acts as markup but its own quoted names. */
function inert(text: string): string {
  const parts = plain(text).split("`");
  const paired = Math.floor((parts.length - 1) / 2) * 2;
  const said = parts.slice(0, paired).map((part, at) => (at % 2 ? quoted(part) : asText(part)));
  const sentence = [...said, asText(parts.slice(paired).join("'"))].join("");
  return /^[-+=]/.test(sentence) ? `\\${sentence}` : sentence;
}

function asText(part: string): string {
  return part
    .replace(ACTIVE, (sign) => (sign === "@" ? `@${APART}` : sign === "#" ? `\\#${APART}` : `\\${sign}`))
    .replaceAll("://", `:${APART}//`)
    .replaceAll("www.", `www${APART}.`);
}

function* lines(advice: Advice, root: string | null): Generator<string> {
  yield `**Health** ${wording.HEALTH[advice.health.verdict]}`;
  for (const note of advice.health.notes) yield `- ${inert(note.text)}`;
  if (advice.health.verdict !== "unusable") {
    yield "";
    if (advice.step !== null) yield `**Step** ${wording.stepText(advice.step)}`;
    yield* heading(wording.DO_THIS);
    if (advice.findings.length === 0) yield wording.NOTHING_TO_DO;
    for (const [at, finding] of advice.findings.entries()) yield* findingLines(at + 1, finding, root);
    const joint = wording.jointText(advice);
    if (joint !== null) yield joint;
  }
  if (advice.checked.length > 0) {
    yield* heading(wording.CHECKED);
    yield* checkedLines(advice, root);
  }
  if (advice.unknown.length > 0) {
    yield* heading(wording.CANNOT_TELL);
    for (const [needs, rules] of wording.byNeed(advice, root)) {
      yield `- ${rules.map((rule) => `\`${rule}\``).join(", ")}: needs ${inert(needs)}`;
    }
  }
}

function* checkedLines(advice: Advice, root: string | null): Generator<string> {
  for (const checked of wording.weighed(advice)) {
    yield `- \`${checked.rule}\`: ${inert(wording.checkedText(checked, root))}`;
  }
  const absent = wording.absentText(advice);
  if (absent !== null) yield `- ${absent}`;
}

function heading(title: string): string[] {
  return ["", `## ${title}`, ""];
}

function* findingLines(number: number, finding: Finding, root: string | null): Generator<string> {
  yield `### ${number}. ${inert(finding.title)}`;
  yield "";
  yield `${quoted(wording.placeText(finding.where, root))}: ${wording.savingText(finding.saving)}`;
  yield "";
  yield inert(finding.fix.text);
  if (finding.fix.code !== null) {
    const code = finding.fix.code.split("\n").map(plain);
    let fence = "```";
    while (code.some((line) => line.includes(fence))) fence += "`";
    yield* ["", `${fence}python`, ...code, fence];
  }
  if (finding.evidence.length > 0) {
    yield "";
    for (const evidence of finding.evidence) yield `- ${inert(wording.evidenceText(evidence, root))}`;
  }
  yield "";
  yield `${wording.surenessText(finding)} (\`${finding.rule}\`)`;
  yield "";
}
