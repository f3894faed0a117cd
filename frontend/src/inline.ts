// Data that a report carries inside itself, in `<script type="application/json" id="selftime-data">`.

import { DataError } from "./api.ts";
import type { Advice, Data, Page, Source, TraceInfo, ViewSpec } from "./api.ts";

export interface Carried {
  format: "selftime.report/1";
  traces: TraceInfo[];
  views: ViewSpec[];
}

export async function carried(): Promise<Carried | null> {
  const text = document.getElementById("selftime-data")?.textContent;
  return text ? (JSON.parse(text) as Carried) : null;
}

export class InlineData implements Data {
  readonly inline = true;
  readonly #carried: Carried;

  constructor(inside: Carried) {
    this.#carried = inside;
  }

  async traces(): Promise<TraceInfo[]> {
    return this.#carried.traces;
  }

  async views(): Promise<ViewSpec[]> {
    return this.#carried.views;
  }

  async page(): Promise<Page> {
    throw new DataError("the report does not hold this table");
  }

  async advice(): Promise<Advice> {
    throw new DataError("the report does not hold the advice");
  }

  async rule(): Promise<string> {
    throw new DataError("the report does not hold this page");
  }

  async source(): Promise<Source | null> {
    return null;
  }

  csv(): string | null {
    return null;
  }
}
