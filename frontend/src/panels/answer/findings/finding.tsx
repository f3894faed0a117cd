// One finding: a line in the list, with details when it is open.

import { Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Advice, Finding, FindingTexts } from "../../../data/advice.ts";
import type { Data, TraceInfo } from "../../../data/api.ts";
import { useQuery } from "../../../parts/data/asking.tsx";
import { NumberLink } from "../../../parts/numbers/number-link.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { EditorLink } from "../../../parts/code/editor-link.tsx";
import { SourceAt } from "../../../parts/code/source.tsx";
import { link } from "../../../route.ts";
import type { Mix } from "../step/background.ts";
import { CopyButton } from "./copy.tsx";
import { EvidenceTable } from "./evidence.tsx";
import { RangeBar } from "./range.tsx";
import { Remedy } from "../fix/remedy.tsx";
import { RuleLink } from "../rule.tsx";
import { WhatIfPicture } from "../step/whatif.tsx";

export interface FindingProps {
  data: Data;
  trace: TraceInfo;
  advice: Advice;
  finding: Finding;
  number: number;
  scale: number;
  mix: Mix;
  /** A step to show in the timeline if the finding has no slices. */
  range: { from: string; to: string } | null;
  isOpen: boolean;
  /** Whether the address names the finding. */
  isAsked: boolean;
  onToggle: () => void;
}

export function FindingItem(props: FindingProps) {
  const { advice, finding, number, scale, isOpen, isAsked, onToggle } = props;
  const said = advice.said.findings[number - 1] as FindingTexts;
  const [saves, ...more] = said.saving;
  const body = `finding-${number}`;
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    // an address may open one far down
    if (isAsked) item.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <li ref={item} class="finding" data-open={isOpen} data-rule={finding.rule}>
      <div class="finding-head" onClick={(event) => isOther(event) || onToggle()}>
        <span class="finding-number">{number}</span>
        <div class="finding-what">
          <h3>
            <button type="button" class="finding-toggle" aria-expanded={isOpen} aria-controls={body}>
              <TraceText text={finding.title} />
            </button>
          </h3>
          <Place finding={finding} said={said} />
          <p class="muted finding-sureness">{said.sureness}</p>
        </div>
        <div class="finding-saving">
          <RangeBar saving={finding.saving} text={said.saving.join(" ")} scale={scale} />
          <p>
            <strong><NumberLink to={finding.saving.estimate_ms === null && finding.saving.upper_ms === null ? null : said.slices.changed}>{saves}</NumberLink></strong>
            {more.map((part) => <span key={part} class="muted"> {part}</span>)}
          </p>
        </div>
      </div>
      {isOpen && <Body {...props} said={said} id={body} />}
    </li>
  );
}

/** Whether a click opens the finding; clicks on links and text selections do not. */
function isOther(event: MouseEvent): boolean {
  const head = event.currentTarget as HTMLElement;
  const selection = getSelection();
  const isSelecting =
    event.detail > 0 && selection !== null && !selection.isCollapsed && head.contains(selection.anchorNode);
  return isSelecting || (event.target as HTMLElement).closest("a") !== null;
}

function Place(props: { finding: Finding; said: FindingTexts }) {
  const { finding: { where }, said } = props;
  if (where.file === null) return <p class="finding-place muted">{said.place}</p>;
  const line = where.line === null ? {} : { line: String(where.line) };
  return (
    <p class="finding-place" title={plain(where.file)}>
      <a class="mono" href={link("lines", { file: where.file, ...line })}>
        {said.line.split(/(?<=\/)/).map((part, at) => <Fragment key={at}>{part}<wbr /></Fragment>)}
      </a>
      {said.place}
    </p>
  );
}

function Body(props: FindingProps & { said: FindingTexts; id: string }) {
  const { data, trace, finding, said, mix, range, id } = props;
  const { file, line } = finding.where;
  const slice = finding.evidence.flatMap((row) => row.events)[0];
  const { changed } = said.slices;
  const shown = changed !== null ? { of: changed.of } : slice === undefined ? range : { slice: String(slice) };
  return (
    <div class="finding-body" id={id}>
      <section>
        <h4>What to do</h4>
        <Remedy data={data} trace={trace.id} finding={finding} said={said} />
      </section>
      <div class="finding-pair">
        <section>
          <h4>The step, before and after</h4>
          <WhatIfPicture step={said.step} mix={mix} />
        </section>
        <section>
          <h4>Measured</h4>
          <EvidenceTable finding={finding} said={said} />
        </section>
      </div>
      {file !== null && line !== null && <Source data={data} trace={trace} file={file} line={line} said={said} />}
      <p class="finding-actions">
        {shown !== null && <a href={link("timeline", shown)}>Show in the timeline</a>}
        <RuleLink rule={finding.rule}>About {finding.rule}</RuleLink>
        <CopyButton text={said.markdown}>Copy as Markdown</CopyButton>
      </p>
    </div>
  );
}

/** Lines of source before and after the finding's. */
const AROUND = 4;

/** The source at the finding's line where it is at hand, and how the line is known. */
function Source(props: { data: Data; trace: TraceInfo; file: string; line: number; said: FindingTexts }) {
  const { data, trace, file, line, said } = props;
  const asked = useQuery(() => data.source(trace.id, file, line, 1), `${trace.id} ${file} ${line}`);
  const isHere = asked.state === "here" && asked.value !== null && asked.value.lines.length > 0;
  return (
    <section>
      {isHere && (
        <>
          <h4 title={plain(file)}>{said.line}</h4>
          <SourceAt data={data} trace={trace.id} file={file} line={line} around={AROUND} />
        </>
      )}
      <p class="muted finding-known">
        {said.line_evidence} {!isHere && <EditorLink file={file} line={line} />}
      </p>
    </section>
  );
}
