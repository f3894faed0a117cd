// The whole answer: health, step, and the same three sections as in the terminal.

import type { Advice, Data } from "../../api.ts";
import { Answered, useAsked } from "../../parts/asking.tsx";
import { Stack } from "../../parts/stack.tsx";
import { STEP_COLUMNS, stepSpan } from "../../parts/stepbars.tsx";
import { countedRows, meanParts } from "../../parts/stepparts.ts";
import { number, textAt, whole } from "../../parts/whole.ts";
import { change, link } from "../../route.ts";
import { text } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { CopyButton } from "./copy.tsx";
import { FindingItem } from "./finding.tsx";
import { HeaviestSection } from "./heaviest.tsx";
import { Figures, Health } from "./letter.tsx";
import { asMarkdown } from "./markdown.ts";
import { RangeScale } from "./range.tsx";
import { CheckedSection, UnknownSection } from "./rest.tsx";
import { RuleSheet } from "./rule.tsx";
import { addresses, scaleOf } from "./step.ts";
import type { Mix } from "./whatif.tsx";
import * as wording from "./wording.ts";

/** What the views know of the step, beside the advice. */
interface Background {
  mix: Mix;
  /** Median time of the counted steps in ms, and what the regime means. */
  typical: number | null;
  meaning: string | null;
  hasDevice: boolean;
  /** The first counted step in the timeline. */
  range: Record<string, string> | null;
}

const NOTHING: Background = { mix: [], typical: null, meaning: null, hasDevice: false, range: null };
const MOST_STEPS = 10_000;

async function background(props: PanelProps): Promise<Background> {
  const { data, trace } = props;
  const [steps, overview] = await Promise.all([
    whole(data, trace.id, "steps", {}, { columns: STEP_COLUMNS }, MOST_STEPS),
    whole(data, trace.id, "overview"),
  ]);
  const counted = countedRows(steps.columns["counted"] ?? []);
  const [first] = counted;
  const metrics = (overview.columns["metric"] ?? []).map(String);
  const sections = (overview.columns["section"] ?? []).map(String);
  const median = number(overview, "value", metrics.indexOf("step time, median"));
  return {
    mix: meanParts(steps.columns, counted),
    typical: median === null ? null : median / 1e6,
    meaning: textAt(overview, "definition", metrics.indexOf("regime")),
    hasDevice: sections.includes("device"),
    range: first === undefined ? null : stepSpan(steps, first),
  };
}

export function AnswerPanel(props: PanelProps) {
  const { data, trace, params } = props;
  const advice = useAsked(() => data.advice(trace.id), trace.id);
  const behind = useAsked(() => background(props), trace.id);
  const known = behind.state === "here" && !behind.stale ? behind.value : NOTHING;
  const rule = params["rule"];
  return (
    <div class="answer">
      <h1 class="visually-hidden">Answer</h1>
      <Answered asked={advice} what="the trace, and asking every rule">
        {(found) => <Letter {...props} advice={found} known={known} />}
      </Answered>
      {advice.state !== "failed" && behind.state === "here" && <HeaviestSection data={data} trace={trace} hasDevice={known.hasDevice} />}
      {advice.state === "here" && <Rest data={data} advice={advice.value} />}
      {rule !== undefined && <RuleSheet key={rule} data={data} rule={rule} />}
    </div>
  );
}

function Letter(props: PanelProps & { advice: Advice; known: Background }) {
  const { advice, known } = props;
  const isUsable = advice.health.verdict !== "unusable";
  return (
    <>
      <header class="answer-head">
        <Health advice={advice} />
        <CopyButton text={() => asMarkdown(advice, wording.commonFolder(advice))}>Copy all as Markdown</CopyButton>
      </header>
      {isUsable && <Figures advice={advice} typical={known.typical} meaning={known.meaning} />}
      {isUsable && known.mix.length > 0 && <StepMix mix={known.mix} />}
      {isUsable && <Findings {...props} />}
    </>
  );
}

function StepMix(props: { mix: Mix }) {
  const whole = props.mix.reduce((sum, { mean }) => sum + mean, 0);
  const parts = props.mix.map(({ part, mean }) => ({
    label: part.label,
    colour: part.colour,
    size: mean,
    text: text(mean / whole, "ratio"),
  }));
  return (
    <div class="answer-mix">
      <Stack parts={parts} label="The average step" height={12} />
      <a class="answer-more" href={link("overview")}>Overview</a>
    </div>
  );
}

function Findings(props: PanelProps & { advice: Advice; known: Background }) {
  const { advice, known, params, data, trace } = props;
  const { findings } = advice;
  const root = wording.commonFolder(advice);
  const names = addresses(findings);
  const scale = scaleOf(findings);
  const open = params["open"];
  const joint = wording.jointText(advice);
  const toggle = (name: string) => change({ open: open === name ? undefined : name });
  return (
    <section class="answer-section">
      <h2>{wording.DO_THIS}</h2>
      {findings.length === 0 && <p>{wording.NOTHING_TO_DO}</p>}
      {findings.length > 0 && <RangeScale scale={scale} />}
      <ol class="findings" onKeyDown={walk} hidden={findings.length === 0}>
        {findings.map((finding, at) => (
          <FindingItem
            key={names[at]}
            data={data}
            trace={trace}
            advice={advice}
            finding={finding}
            number={at + 1}
            scale={scale}
            root={root}
            mix={known.mix}
            range={known.range}
            isOpen={names[at] === open}
            onToggle={() => toggle(names[at] ?? "")}
          />
        ))}
      </ol>
      {joint !== null && <p class="answer-joint">{joint}</p>}
    </section>
  );
}

/** Up and down move between the findings. */
function walk(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const list = event.currentTarget as HTMLElement;
  const all = [...list.querySelectorAll<HTMLElement>(".finding-toggle")];
  const at = all.indexOf(event.target as HTMLElement);
  if (by === undefined || at === -1) return;
  event.preventDefault();
  all[at + by]?.focus();
}

function Rest(props: { data: Data; advice: Advice }) {
  const { advice } = props;
  return (
    <>
      <CheckedSection advice={advice} root={wording.commonFolder(advice)} />
      <UnknownSection advice={advice} hasPages={!props.data.inline} />
    </>
  );
}
