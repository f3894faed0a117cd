// Filters: what a column must be, one field each, with units as people write them.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Column, Filter } from "../../../data/api.ts";
import { plain } from "../../../parts/text/plain.ts";
import { isText } from "../../../data/table.ts";
import { exampleOf, parseQuantity } from "../../../units.ts";
import type { PlacedColumn } from "../layout/columns.ts";
import { labelOf } from "../layout/columns.ts";

type Ops = readonly [op: Filter["op"], words: string][];

const TEXT: Ops = [["has", "contains"], ["is", "is"]];
const NUMBER: Ops = [["from", "at least"], ["to", "at most"], ["is", "is"]];
const FLAG: Ops = [["is", "is"]];

function opsOf(column: Column): Ops {
  if (column.unit === "flag") return FLAG;
  if (isText(column.unit)) return TEXT;
  return column.unit === "id" ? [["is", "is"], ["from", "at least"], ["to", "at most"]] : NUMBER;
}

const SIGNS: Readonly<Record<Filter["op"], string>> = { is: "is", has: "contains", from: "≥", to: "≤" };

/** A filter in a few words. */
export function filterWords(filter: Filter): string {
  const value = filter.value === "" ? "unknown" : plain(filter.value);
  return `${labelOf(filter.column)} ${SIGNS[filter.op]} ${value}`;
}

function isWrong(column: Column, words: string): boolean {
  if (words === "" || isText(column.unit) || column.unit === "flag") return false;
  return parseQuantity(words, column.unit) === null;
}

/** What was typed, as filters; null if something of it is no number. */
function typedFilters(column: Column, words: Readonly<Record<string, string>>): Filter[] | null {
  const told = Object.entries(words).filter(([, value]) => value.trim() !== "");
  if (told.some(([, value]) => isWrong(column, value))) return null;
  return told.map(([op, value]) => ({ column: column.name, op: op as Filter["op"], value: value.trim() }));
}

interface Props {
  column: PlacedColumn;
  filters: readonly Filter[];
  left: number;
  onChange: (filters: Filter[]) => void;
  onClose: () => void;
  /** What stands above the fields. */
  children?: ComponentChildren;
}

export function FilterForm(props: Props) {
  const { column, filters, onChange, onClose } = props;
  const form = useRef<HTMLFormElement>(null);
  const [words, setWords] = useState<Record<string, string>>(() =>
    Object.fromEntries(filters.map((filter) => [filter.op, filter.value])),
  );
  const [isUnknown, setUnknown] = useState(filters.some((one) => one.op === "is" && one.value === ""));
  useEffect(() => {
    setWords(Object.fromEntries(filters.map((filter) => [filter.op, filter.value])));
    setUnknown(filters.some((one) => one.op === "is" && one.value === ""));
  }, [JSON.stringify(filters)]);
  useEffect(() => (form.current?.querySelector("label:not(.grid-check) input, label select") as HTMLElement | null)?.focus(), []);
  useOutside(form, onClose);
  const apply = (event: Event) => {
    event.preventDefault();
    const typed = isUnknown ? [{ column: column.name, op: "is" as const, value: "" }] : typedFilters(column, words);
    if (typed !== null) onChange(typed);
  };
  return (
    <form
      ref={form}
      class="grid-filter"
      aria-label={`Filter ${column.label}`}
      style={{ left: `${props.left}px` }}
      onSubmit={apply}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Escape") onClose();
      }}
    >
      {props.children}
      {opsOf(column).map(([op, told]) => (
        <FilterField
          key={op}
          column={column}
          told={told}
          value={words[op] ?? ""}
          disabled={isUnknown}
          onChange={(value) => setWords((known) => ({ ...known, [op]: value }))}
        />
      ))}
      {column.nullable && (
        <label class="grid-check">
          <input type="checkbox" checked={isUnknown} onChange={(event) => setUnknown(event.currentTarget.checked)} />
          only unknown values
        </label>
      )}
      <p class="grid-buttons">
        <button type="submit">Filter</button>
        <button type="button" class="quiet" disabled={filters.length === 0} onClick={() => onChange([])}>Clear</button>
      </p>
    </form>
  );
}

interface FieldProps {
  column: PlacedColumn;
  told: string;
  value: string;
  disabled: boolean;
  onChange: (value: string) => void;
}

function FilterField(props: FieldProps) {
  const { column, told, value, disabled, onChange } = props;
  const wrong = isWrong(column, value);
  if (column.unit === "flag") {
    return (
      <label>
        <span>{told}</span>
        <select value={value} disabled={disabled} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">either</option>
          <option value="yes">yes</option>
          <option value="no">no</option>
        </select>
      </label>
    );
  }
  return (
    <label>
      <span>{told}</span>
      <input
        value={value}
        disabled={disabled}
        placeholder={isText(column.unit) ? "" : exampleOf(column.unit)}
        aria-invalid={wrong}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {wrong && <span class="grid-wrong" role="alert">write a number, such as {exampleOf(column.unit)}</span>}
    </label>
  );
}

/** Calls a function when the user clicks outside of an element. */
export function useOutside(element: { current: HTMLElement | null }, onOutside: () => void): void {
  const latest = useRef(onOutside);
  latest.current = onOutside;
  useEffect(() => {
    const pressed = (event: PointerEvent) => {
      if (!element.current?.contains(event.target as Node)) latest.current();
    };
    document.addEventListener("pointerdown", pressed);
    return () => document.removeEventListener("pointerdown", pressed);
  }, []);
}

/** The filters that are set, each with a button that takes it away. */
export function FilterChips(props: { filters: readonly Filter[]; onChange: (filters: Filter[]) => void }) {
  const { filters, onChange } = props;
  if (filters.length === 0) return null;
  return (
    <span class="grid-chips">
      {filters.map((filter) => (
        <button
          key={`${filter.column} ${filter.op}`}
          type="button"
          class="grid-chip"
          title="Remove this filter"
          onClick={() => onChange(filters.filter((other) => other !== filter))}
        >
          <span>{filterWords(filter)}</span>
          <span aria-hidden="true">×</span>
        </button>
      ))}
    </span>
  );
}
