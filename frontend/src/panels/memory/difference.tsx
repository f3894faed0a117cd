// What holds a device's memory at one time and not at another, or in one trace and not in another.

import { QueryResult } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { number } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { bytesText, countText, exactText, instantText } from "../../units.ts";
import { versusText } from "./against.tsx";
import type { Difference as Group, Versus } from "./differences.ts";
import { differencesOf, signedBytes } from "./differences.ts";
import type { HolderGrouping } from "./holder.tsx";
import { Holder } from "./holder.tsx";
import type { HoldersProps } from "./holders.tsx";
import { useOtherSide } from "./loading.ts";
import type { When } from "./stretch.ts";

const MOST = 200;

interface DifferenceProps extends HoldersProps {
  when: When;
  after: FullTable;
  by: HolderGrouping;
  versus: Versus;
}

export function Difference(props: DifferenceProps) {
  const asked = useOtherSide(props, "memory_peak");
  return <QueryResult asked={asked} what="what it is compared with">{(before) => <Compared {...props} before={before} />}</QueryResult>;
}

function Compared(props: DifferenceProps & { before: FullTable }) {
  const { before, after, curve, when, by } = props;
  const groups = differencesOf(before, after);
  const changed = groups.filter((group) => group.change !== 0);
  const most = Math.max(...changed.map((group) => Math.abs(group.change)), 1);
  const [from, to] = [before, after].map((table) => table.totals["bytes"] ?? 0) as [number, number];
  return (
    <>
      <p class="holders-when">
        <strong>{signedBytes(to - from)}</strong> {plain(curve.title)}, from {bytesText(from)} {named(props)} to {bytesText(to)} {when.words}
        {time(after)}
      </p>
      <div class="holders-rows" tabIndex={0}>
        <table class="holders-differences">
          <thead>
            <tr>
              <th scope="col">Held by</th><th scope="col" class="number">Before</th><th scope="col" class="number">After</th>
              <th scope="col" class="number">Change</th>
            </tr>
          </thead>
          <tbody>{changed.slice(0, MOST).map((group, at) => <Row key={at} group={group} most={most} by={by} />)}</tbody>
        </table>
        {changed.length > MOST && <p class="muted">{countText(changed.length - MOST)} smaller changes</p>}
        {groups.length > changed.length && <p class="muted">{countText(groups.length - changed.length)} groups did not change</p>}
      </div>
    </>
  );
}

function Row(props: { group: Group; most: number; by: HolderGrouping }) {
  const { table, row, before, after, change } = props.group;
  const amount = (bytes: number) => (bytes === 0 ? "-" : bytesText(bytes));
  return (
    <tr>
      <td class="holder">
        <i class={change > 0 ? "more" : "less"} style={{ width: `${(100 * Math.abs(change)) / props.most}%` }} aria-hidden="true" />
        <Holder table={table} row={row} by={props.by} />
      </td>
      <td class="number">{amount(before)}</td>
      <td class="number">{amount(after)}</td>
      <td class="number" title={exactText(change, "bytes")}>{signedBytes(change)}</td>
    </tr>
  );
}

function time(table: FullTable): string {
  const at = number(table, "time", 0);
  return at === null ? "" : `, ${instantText(at)}`;
}

function named(props: DifferenceProps & { before: FullTable }): string {
  const { versus, traces, before } = props;
  const words = `at ${versusText(versus, traces)}`;
  return versus.kind === "peak" ? `${words}${time(before)},` : words;
}
