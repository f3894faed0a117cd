// The words for the identifiers in a column, such as `first_batch`, as the server sends them.

import type { Column, Label } from "../../data/api.ts";

export type Labels = Readonly<Record<string, Label>>;

/** The labels of a column's values; empty if the values are shown as they are. */
export function labelsOf(spec: { columns: readonly Column[] } | undefined, column: string): Labels {
  return spec?.columns.find(({ name }) => name === column)?.labels ?? {};
}

/** The label that the server sent for a value; undefined if it sent none. */
export function sentLabel(labels: Labels, value: string): Label | undefined {
  return Object.hasOwn(labels, value) ? labels[value] : undefined; // a value may be `constructor`
}

/** The label of a value; a value that the server does not explain is its own label. */
export function labelOfValue(labels: Labels, value: string): Label {
  return sentLabel(labels, value) ?? { text: value.replaceAll("_", " "), doc: "" };
}
