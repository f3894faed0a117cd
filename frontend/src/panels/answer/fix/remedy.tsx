// What to change: as text, and as a diff if the fix matches the file.

import type { Finding, FindingTexts } from "../../../data/advice.ts";
import type { Data } from "../../../data/api.ts";
import { useQuery } from "../../../parts/data/asking.tsx";
import { Diff } from "../../../parts/code/diff.tsx";
import { changedLines, patchOf } from "../../../parts/code/patch.ts";
import { download } from "../../../parts/controls/download.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { Code } from "../../../parts/code/source.tsx";
import { CopyButton } from "../findings/copy.tsx";
import { edits } from "./fix.ts";
import { isCell } from "../../../parts/text/place.ts";

/** Lines of a file that are searched for the fix's code. */
const LONGEST = 5_000;

export function Remedy(props: { data: Data; trace: string; finding: Finding; said: FindingTexts }) {
  const { fix } = props.finding;
  return (
    <>
      <p class="remedy-text"><TraceText text={fix.text} /></p>
      {fix.code !== null && <AsCode {...props} code={fix.code} />}
    </>
  );
}

function AsCode(props: { data: Data; trace: string; finding: Finding; said: FindingTexts; code: string }) {
  const { data, trace, finding, code } = props;
  const { file, line } = finding.where;
  const asked = useQuery(
    async () => (file === null ? null : data.source(trace, file, 1, LONGEST)),
    `${trace} ${file}`,
  );
  const source = asked.state === "here" ? asked.value : null;
  const changes = source !== null && source.from === 1 ? edits(code, source.lines, line) : [];
  if (asked.state === "waiting") return null;
  if (source === null || changes.length === 0) {
    return (
      <figure class="remedy">
        <figcaption>Code to adapt <CopyButton text={code}>Copy code</CopyButton></figcaption>
        <Code lines={code.split("\n")} label="The fix as code to adapt" />
      </figure>
    );
  }
  const cell = file !== null && isCell(file) ? file : null;
  const name = cell ?? (line === null ? props.said.line : props.said.line.slice(0, -`:${line}`.length));
  const isWhole = source.lines.length === source.count;
  return (
    <figure class="remedy">
      <figcaption>
        The change in <code>{name}</code> <CopyButton text={code}>Copy code</CopyButton>
        {cell !== null
          ? isWhole && <CopyButton text={changedLines(source.lines, changes).join("\n")}>Copy changed cell</CopyButton>
          : <Patch name={`${finding.rule}.patch`} text={patchOf(name, source.lines, changes)} />}
      </figcaption>
      <Diff lines={source.lines} changes={changes} label={`The fix as a change of ${name}`} />
    </figure>
  );
}

function Patch(props: { name: string; text: string }) {
  const { name, text } = props;
  return (
    <>
      <CopyButton text={text}>Copy patch</CopyButton>
      <button
        type="button"
        class="quiet copy"
        title="For `git apply`, in the folder that the path begins in"
        onClick={() => download(name, "text/x-patch", text)}
      >
        Save patch
      </button>
    </>
  );
}
