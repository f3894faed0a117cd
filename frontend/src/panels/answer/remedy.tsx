// What to change: in words, and as a diff of the file where the fix can be lined up with it.

import type { Data, Finding, SaidFinding } from "../../api.ts";
import { useAsked } from "../../parts/asking.tsx";
import { Diff } from "../../parts/diff.tsx";
import { Said } from "../../parts/said.tsx";
import { Code } from "../../parts/source.tsx";
import { edits } from "./fix.ts";

/** More of a file is not looked through for what the fix changes. */
const LONGEST = 5_000;

export function Remedy(props: { data: Data; trace: string; finding: Finding; said: SaidFinding }) {
  const { fix } = props.finding;
  return (
    <>
      <p class="remedy-text"><Said text={fix.text} /></p>
      {fix.code !== null && <AsCode {...props} code={fix.code} />}
    </>
  );
}

function AsCode(props: { data: Data; trace: string; finding: Finding; said: SaidFinding; code: string }) {
  const { data, trace, finding, code } = props;
  const { file, line } = finding.where;
  const asked = useAsked(
    async () => (file === null ? null : data.source(trace, file, 1, LONGEST)),
    `${trace} ${file}`,
  );
  const source = asked.state === "here" ? asked.value : null;
  const changes = source !== null && source.from === 1 ? edits(code, source.lines, line) : [];
  if (asked.state === "waiting") return null;
  if (source === null || changes.length === 0) {
    return (
      <figure class="remedy">
        <figcaption>Code to adapt</figcaption>
        <Code lines={code.split("\n")} label="The fix as code to adapt" />
      </figure>
    );
  }
  const name = line === null ? props.said.line : props.said.line.slice(0, -`:${line}`.length);
  return (
    <figure class="remedy">
      <figcaption>The change in <code>{name}</code></figcaption>
      <Diff lines={source.lines} changes={changes} label={`The fix as a change of ${name}`} />
    </figure>
  );
}
