// The words of the answer: those of reports/advice/wording.py, so that page and terminal say the same.
// Both are held to tests/golden/wording.json.

import type { Advice, Evidence, Finding, Saving, Where } from "../../api.ts";
import { plain } from "../../parts/plain.ts";
import { fixed, grouped, text } from "../../units.ts";
import type { Unit } from "../../api.ts";

export const DO_THIS = "Do this";
export const CHECKED = "Checked, not worth it";
export const CANNOT_TELL = "Cannot tell";
export const NOTHING_TO_DO = "Nothing was found that is worth a change.";

export const HEALTH: Readonly<Record<Advice["health"]["verdict"], string>> = {
  good: "good: the trace is fit for advice",
  degraded: "degraded: read the numbers with the notes below",
  unusable: "unusable: no advice is given on this trace",
};
export const SEMANTICS: Readonly<Record<Finding["semantics"], string>> = {
  neutral: "results stay the same",
  numerics: "results change by rounding",
  training: "training may go another way",
};
export const CONFIDENCE: Readonly<Record<Finding["confidence"], string>> = {
  high: "high confidence",
  medium: "medium confidence",
  low: "low confidence",
};

/** Milliseconds with three digits that count, as people compare them. */
export function milliseconds(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : 2;
  const [whole = "", rest] = fixed(value, digits).split(".");
  return `${grouped(whole)}${rest === undefined ? "" : `.${rest}`} ms`;
}

/** A text in which files below `root` are named as seen from there. */
export function below(words: string, root: string | null): string {
  return root === null ? words : words.replaceAll(`${root.replace(/\/+$/, "")}/`, "");
}

/** The line as an editor opens it, and the function around it. */
export function placeText(where: Where, root: string | null = null): string {
  if (where.file === null) {
    return where.function === null ? "line unknown" : `in ${plain(where.function)}`;
  }
  const inside = where.function === null ? "" : ` in ${plain(where.function)}`;
  const nearby = where.how === "definition" ? " (where it is defined)" : "";
  return `${lineText(where, root)}${inside}${nearby}`;
}

/** File and line alone. */
export function lineText(where: Where, root: string | null = null): string {
  const prefix = root === null ? null : `${root.replace(/\/+$/, "")}/`;
  const file = where.file ?? "";
  const seen = prefix !== null && file.startsWith(prefix) ? file.slice(prefix.length) : file;
  return `${plain(seen)}${where.line === null ? "" : `:${where.line}`}`;
}

/** The estimate with its interval; a saving that nobody can know has no number. */
export function savingText(saving: Saving): string {
  if (saving.estimate_ms === null) {
    if (saving.upper_ms === null) return "saving unknown";
    return `saves at most ${milliseconds(saving.upper_ms)} a step`;
  }
  const words = [`saves ${milliseconds(saving.estimate_ms)} a step`];
  const interval = intervalText(saving);
  if (interval !== null) words.push(` (${interval})`);
  if (saving.speedup !== null) words.push(`, ${speedupText(saving.speedup)}`);
  return words.join("");
}

export function intervalText(saving: Saving): string | null {
  if (saving.low_ms === null || saving.high_ms === null) return null;
  return `${milliseconds(saving.low_ms)} to ${milliseconds(saving.high_ms)}`;
}

export function speedupText(speedup: number): string {
  return `${fixed(speedup, 2)} times as fast`;
}

export function surenessText(finding: Finding): string {
  return `${CONFIDENCE[finding.confidence]}, ${SEMANTICS[finding.semantics]}`;
}

export function valueText(evidence: Evidence): string {
  if (evidence.value !== null && evidence.unit === "ms") return milliseconds(evidence.value);
  return text(evidence.value, (evidence.unit === "ms" ? "ns" : evidence.unit) as Unit);
}

export function evidenceText(evidence: Evidence, root: string | null = null): string {
  return `${plain(below(evidence.metric, root))}: ${valueText(evidence)}`;
}

type Checked = Advice["checked"][number];

export function checkedText(checked: Checked, root: string | null = null): string {
  const reason = plain(below(checked.reason, root));
  if (checked.upper_ms === null) return reason;
  return `${reason} (at most ${milliseconds(checked.upper_ms)} a step)`;
}

/** What was checked and found, and is not worth a change. */
export function weighed(advice: Advice): Checked[] {
  return advice.checked.filter((_, at) => !advice.absent.includes(at));
}

/** How many more causes were looked for and not found. */
export function absentText(advice: Advice): string | null {
  const count = new Set(advice.absent.map((at) => advice.checked[at]?.rule)).size;
  if (count === 0) return null;
  const more = advice.absent.length < advice.checked.length ? `and ${count} other` : `${count}`;
  const oneOrAll = count === 1 ? "cause: nothing of its" : "causes: nothing of their";
  return `${more} ${oneOrAll} kind in this trace`;
}

/** The typical step in one line; what is unknown is left out. */
export function stepText(step: NonNullable<Advice["step"]>): string {
  const parts: string[] = [];
  if (step.host_ms !== null) parts.push(`host ${milliseconds(step.host_ms)}`);
  if (step.device_ms !== null) parts.push(`device ${milliseconds(step.device_ms)}`);
  if (step.regime !== null) parts.push(step.regime);
  if (step.count === 0) return ["no steps marked", ...parts].join(", ");
  return [...parts, step.count > 1 ? `median of ${step.count}` : "one step"].join(", ");
}

/** What all fixes save together, where there are several. */
export function jointText(advice: Advice): string | null {
  if (advice.findings.length < 2) return null;
  const estimate = advice.joint?.estimate_ms ?? null;
  if (estimate === null) return "These savings overlap; they do not add up.";
  return `Together they save ${milliseconds(estimate)} a step.`;
}

/** What the recording lacks, each with the rules that wait for it. */
export function byNeed(advice: Advice, root: string | null = null): [needs: string, rules: string[]][] {
  const needs = new Map<string, string[]>();
  for (const { needs: words, rule } of advice.unknown) {
    const need = below(words, root);
    needs.set(need, [...(needs.get(need) ?? []), rule]);
  }
  return [...needs];
}

/** The folder that the files of all findings lie below; null if there is none to speak of. */
export function commonFolder(advice: Advice): string | null {
  const files = advice.findings.map((finding) => finding.where.file).filter((file) => file !== null);
  const folders = files.filter((file) => file.startsWith("/")).map((file) => file.split("/").slice(0, -1));
  const [first, ...rest] = folders;
  if (first === undefined) return null;
  let length = first.length;
  for (const folder of rest) {
    const differs = first.findIndex((part, at) => folder[at] !== part);
    if (differs !== -1) length = Math.min(length, differs);
  }
  return length < 3 ? null : first.slice(0, length).join("/");
}
