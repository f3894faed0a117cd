import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Advice } from "../../api.ts";
import { plain, pieces } from "../../parts/plain.ts";
import { asMarkdown, findingMarkdown } from "./markdown.ts";
import * as wording from "./wording.ts";

interface Golden {
  milliseconds: [number, string][];
  plain: [string, string][];
  answers: { advice: Advice; root: string | null; said: Record<string, unknown>; markdown: string }[];
}

const golden = JSON.parse(
  readFileSync(new URL("../../../../tests/golden/wording.json", import.meta.url), "utf8"),
) as Golden;

test("milliseconds are written as the terminal writes them", () => {
  for (const [value, text] of golden.milliseconds) assert.equal(wording.milliseconds(value), text);
});

test("what would act in a terminal or on a page is shown as everywhere else", () => {
  for (const [text, shown] of golden.plain) assert.equal(plain(text), shown);
});

test("page and terminal say the same of an answer", () => {
  for (const { advice, root, said, markdown } of golden.answers) {
    const { findings } = advice;
    assert.deepEqual(
      {
        health: wording.HEALTH[advice.health.verdict],
        step: advice.step && wording.stepText(advice.step),
        places: findings.map((finding) => wording.placeText(finding.where, root)),
        savings: findings.map((finding) => wording.savingText(finding.saving)),
        sureness: findings.map((finding) => wording.surenessText(finding)),
        evidence: findings.map((finding) => finding.evidence.map((row) => wording.evidenceText(row, root))),
        checked: wording.weighed(advice).map((checked) => wording.checkedText(checked, root)),
        absent: wording.absentText(advice),
        joint: wording.jointText(advice),
        needs: Object.fromEntries(wording.byNeed(advice)),
      },
      said,
    );
    assert.equal(asMarkdown(advice, root), markdown);
  }
});

test("one finding is copied as it stands in the whole answer", () => {
  for (const { advice, root, markdown } of golden.answers) {
    for (const [at, finding] of advice.findings.entries()) {
      const alone = findingMarkdown(at + 1, finding, root);
      assert.ok(markdown.includes(alone.trimEnd()), alone);
    }
  }
});

test("names stand between backticks, a backtick alone is a backtick", () => {
  assert.deepEqual(pieces("the `a` of `b"), [
    { text: "the ", isName: false },
    { text: "a", isName: true },
    { text: " of ", isName: false },
    { text: "`b", isName: false },
  ]);
});

test("files are named as seen from the folder that all lie below", () => {
  const at = (file: string | null) => ({ where: { file, line: 1, function: null, how: "stack" } });
  const advice = (...files: (string | null)[]) => ({ findings: files.map(at) }) as unknown as Advice;
  assert.equal(wording.commonFolder(advice("/data/me/job/train.py", "/data/me/job/data/set.py", null)), "/data/me/job");
  assert.equal(wording.commonFolder(advice("/data/me/job/train.py")), "/data/me/job");
  assert.equal(wording.commonFolder(advice("/data/me/train.py", "/usr/lib/x.py")), null);
  assert.equal(wording.commonFolder(advice("train.py", null)), null);
});
