// The panel of a job's ranks: what their steps are spent on and would be, waits, and collectives.

import "./style.css";
import type { Job } from "../../data/api.ts";
import { QueryResult, Empty, useQuery } from "../../parts/data/asking.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { loadTable } from "../../parts/data/full-table.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { JobLead } from "./account.tsx";
import { RankTable } from "./rank-table.tsx";
import { Collectives } from "./collectives.tsx";
import { Groups } from "./groups.tsx";
import { JobState } from "./job-state.tsx";
import { MapSection } from "./map/section.tsx";
import { Verdicts } from "./verdicts.tsx";
import { WaitsSection } from "./waits/section.tsx";
import { WhatIfSwitches } from "./what-if/switches.tsx";

KEYS["distributed"] = [
  ["Arrows", "in the map: from rank to rank, from step to step"],
  ["Enter", "in the map: what the rank did in the step; again: its timeline there"],
];

export interface JobProps extends PanelProps {
  job: Job;
}

function Distributed(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery(() => data.job(trace.id), trace.id);
  return (
    <div class="job">
      <h1>Distributed</h1>
      <QueryResult asked={asked} what="the traces of all ranks">{(job) => <Known {...props} job={job} />}</QueryResult>
    </div>
  );
}

function Known(props: JobProps) {
  const { data, trace, job } = props;
  const several = job.ranks.length > 1;
  const stragglers = useQuery(() => loadTable(data, trace.id, "stragglers"), trace.id);
  const ranks = useQuery(() => loadTable(data, trace.id, "ranks"), trace.id);
  if (!several && job.groups.length === 0 && (job.size ?? 1) === 1) {
    return (
      <Empty title="A recording of one process">
        <p>
          It belongs to no job of several ranks. Where each rank writes its trace into one folder,
          and that folder is opened, this tells who waits for whom, and why.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <JobState job={job} />
      {job.account !== null && <JobLead account={job.account} />}
      {several && <QueryResult asked={ranks}>{(table) => <RankTable {...props} table={table} />}</QueryResult>}
      {several && <QueryResult asked={stragglers}>{(table) => <Verdicts {...props} table={table} />}</QueryResult>}
      {several && <WhatIfSwitches {...props} />}
      {several && <MapSection {...props} />}
      {several && <WaitsSection {...props} />}
      <Collectives {...props} />
      <Groups job={job} />
    </>
  );
}

export const distributed: Panel = {
  name: "distributed",
  title: "Distributed",
  group: "job",
  component: Distributed,
  view: "ranks",
};
