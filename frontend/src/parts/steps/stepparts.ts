// The parts of a step: the columns of the view `steps` that add up to its time.

export interface StepPart {
  column: string;
  label: string;
  /** The variable of style.css. */
  colour: string;
}

export const STEP_PARTS: readonly StepPart[] = [
  { column: "kernel", label: "kernel", colour: "kernel" },
  { column: "memcpy", label: "memcpy", colour: "copy" },
  { column: "memset", label: "memset", colour: "python" },
  { column: "communication", label: "communication", colour: "collective" },
  { column: "runtime", label: "runtime", colour: "runtime" },
  { column: "data_loading", label: "data loading", colour: "loading" },
  { column: "cpu", label: "cpu", colour: "operator" },
  { column: "other", label: "other", colour: "idle" },
];

/** The mean over some rows of each part that any of them has; empty where there is no row. */
export function meanParts(
  columns: Readonly<Record<string, readonly unknown[]>>,
  rows: readonly number[],
): { part: StepPart; mean: number }[] {
  return STEP_PARTS.flatMap((part) => {
    const values = rows.map((row) => columns[part.column]?.[row]).filter((value) => typeof value === "number");
    const sum = values.reduce((total, value) => total + value, 0);
    return sum === 0 ? [] : [{ part, mean: sum / rows.length }];
  });
}

/** The rows of the steps that count for medians; all if none does, as everywhere in selftime. */
export function countedRows(counted: readonly unknown[]): number[] {
  const all = [...counted.keys()];
  const kept = all.filter((row) => counted[row] === true);
  return kept.length > 0 ? kept : all;
}
