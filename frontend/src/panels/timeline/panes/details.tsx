// Details of the chosen slice, with links.

import type { Page, Unit } from "../../../data/api.ts";
import { PartOf } from "../../../parts/numbers/part-of.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { current, link } from "../../../route.ts";
import { exactText, instantText, text, timeText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import type { TimelineController } from "../input/controller.ts";
import { cellReader } from "../tiles/cell-reader.ts";
import { ownId } from "../tracks/sources.ts";
import { LINKS, WORK } from "../input/relations.ts";
import { Compared } from "./compared.tsx";
import { DeviceWork, Links } from "./links.tsx";
import type { Slice } from "../drawing/viewport.ts";
import { placeText } from "../../../parts/text/place.ts";

interface Fact {
  key: string;
  value: string;
}

const TITLES: Record<string, string> = {
  slice: "Slice",
  where: "Source",
  arguments: "Arguments",
  launch: "Launch configuration",
  copy: "Copy",
  collective: "Collective",
  compiled: "Compiled kernel",
  wait: "Wait",
  frame: "Python frame",
  result: "Row of the result",
};
const FIRST = "slice";
/** Facts that the heading or links show already. */
const ELSEWHERE = new Set(["name"]);

export function Details(props: PanelProps & { controller: TimelineController }) {
  const { controller, views } = props;
  const slice = controller.picture.chosen.selected;
  if (slice === null) return null;
  const { page, links, work, error } = controller.told;
  return (
    <section class="timeline-details" aria-label="Details of the slice">
      <header>
        <h2 title={plain(slice.name.slice(0, 4000))}>{plain(slice.name.slice(0, 600))}</h2>
        <span class="muted">{[controller.isJoint ? controller.of(slice.id).label : "", slice.category].filter(Boolean).map(plain).join(" · ")}</span>
        <Grids slice={slice} views={views} trace={controller.of(slice.id).trace} />
        <Compared controller={controller} />
        <button type="button" class="quiet" title="Fit (F)" onClick={() => controller.fit()}>Fit</button>
        <button type="button" class="quiet" title="Close (Esc)" aria-label="Close" onClick={() => controller.select(null)}>×</button>
      </header>
      {slice.id >= 0 && <PartOf data={props.data} trace={controller.of(slice.id).trace} slice={ownId(slice.id)} here />}
      <div class="timeline-facts">
        {page === null ? <Brief slice={slice} error={error} /> : <Facts page={page} only={FIRST} trace={controller.of(slice.id).trace} />}
        <Links links={links.filter((one) => one.key !== WORK)} slice={slice} controller={controller} />
        {work !== null && <DeviceWork work={work} slice={slice} controller={controller} />}
        {page !== null && <div class="timeline-column"><Facts page={page} trace={controller.of(slice.id).trace} /></div>}
      </div>
    </section>
  );
}

/** Details from the tile, while or if no more are available. */
function Brief(props: { slice: Slice; error: string | null }) {
  const { slice, error } = props;
  return (
    <>
      <Table
        title="Slice"
        facts={[
          { key: "duration", value: timeText(slice.end - slice.start) },
          { key: "self time", value: Number.isNaN(slice.self) ? "-" : timeText(slice.self) },
          { key: "start", value: instantText(slice.start) },
        ]}
      />
      {error !== null && <p class="muted">{error}</p>}
    </>
  );
}

/** The groups of facts: the one that stands first alone, else the others. */
function Facts(props: { page: Page; only?: string; trace: string }) {
  const groups = [...factsOf(props.page)].filter(([group]) => (group === FIRST) === (props.only === FIRST));
  return (
    <>
      {groups.map(([group, facts]) =>
        group === "where" ? <Source key={group} facts={facts} trace={props.trace} /> : <Table key={group} title={TITLES[group] ?? group} facts={facts} />,
      )}
    </>
  );
}

function factsOf(page: Page): Map<string, Fact[]> {
  const read = cellReader(page);
  const groups = new Map<string, Fact[]>();
  for (let row = 0; row < page.rows; row++) {
    const [group, key] = [read.text("group", row), read.text("key", row)];
    if (group === LINKS || group === WORK || (group === "slice" && ELSEWHERE.has(key))) continue;
    const facts = groups.get(group) ?? [];
    facts.push({ key, value: written(read.text("value", row), read.text("unit", row) as Unit) });
    groups.set(group, facts);
  }
  return groups;
}

const WORDS = new Set<Unit>(["name", "text", "sentence"]);

function written(value: string, unit: Unit): string {
  if (WORDS.has(unit) || value === "") return plain(value);
  if (unit === "flag") return value === "true" ? "yes" : "no";
  const number = Number(value);
  if (Number.isNaN(number)) return plain(value);
  // one slice is looked at closely: its times are there to the last digit
  const exact = unit === "ns" || unit === "instant" ? exactText(number, unit) : undefined;
  return exact === undefined ? text(number, unit) : `${text(number, unit)} (${exact})`;
}

function Table(props: { title: string; facts: readonly Fact[] }) {
  return (
    <div class="timeline-table">
      <h3>{props.title}</h3>
      <dl>
        {props.facts.map(({ key, value }) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd title={value}>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** The line in the user's file, as a way to it. */
function Source(props: { facts: readonly Fact[]; trace: string }) {
  const of = (key: string) => props.facts.find((fact) => fact.key === key)?.value;
  const [file, line, function_, how] = [of("file"), of("line"), of("function"), of("how")];
  if (file === undefined) return null;
  const short = file.split(/[/\\]/).at(-1) ?? file;
  const where = line === undefined ? { file } : { file, line };
  const to = link("lines", current().params["trace"] === undefined ? where : { trace: props.trace, ...where });
  return (
    <div class="timeline-table">
      <h3>Source</h3>
      <dl>
        <div><dt>line</dt><dd><a href={to} title={file}>{placeText(short, line)}</a></dd></div>
        {function_ && <div><dt>function</dt><dd title={function_}>{function_}</dd></div>}
        {how && <div><dt>known by</dt><dd>{how}</dd></div>}
      </dl>
    </div>
  );
}

const KERNELS = new Set(["kernel", "concurrent_kernel"]);
const COPIES = new Set(["gpu_memcpy", "gpu_memset"]);

/** Ways to the tables in which the slice is a row. */
function Grids(props: { slice: Slice; views: PanelProps["views"]; trace: string }) {
  const { slice, views } = props;
  const of = current().params["trace"] === undefined ? {} : { trace: props.trace };
  const find = slice.name.length <= 200 ? slice.name : slice.name.slice(0, 120);
  const ways: [string, string][] = [];
  if (slice.category === "cpu_op") ways.push(["operators", "in operators"]);
  else if (KERNELS.has(slice.category)) ways.push(["kernels", "in kernels"]);
  else if (COPIES.has(slice.category)) ways.push(["copies", "in copies"]);
  else if (slice.category.endsWith("_runtime") || slice.category.endsWith("_driver")) ways.push(["launches", "in launches"]);
  return (
    <>
      {ways.filter(([view]) => views.has(view)).map(([view, title]) => (
        <a key={view} href={link(view, { ...of, find })}>{title}</a>
      ))}
    </>
  );
}
