// The view's own options, each as its type asks for.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Cell, Options, OptionSpec } from "../../../data/api.ts";
import { Choice } from "../../../parts/controls/choice.tsx";
import { labelOf } from "../layout/columns.ts";
import { useOutside } from "./filter.tsx";
import { optionValue } from "./state.ts";

/** More than these are a list to open, not buttons side by side. */
const SIDE_BY_SIDE = 8;

interface Props {
  specs: readonly OptionSpec[];
  values: Options;
  onChange: (options: Options) => void;
}

/** The grid sorts by itself; the option would sort before it, to no effect. */
const NOT_SHOWN = "sort";

function isTyped(spec: OptionSpec): boolean {
  return spec.type !== "flag" && spec.type !== "choice" && spec.parts.length === 0;
}

/** Options that are chosen by a press, side by side. */
export function PressedOptions(props: Props) {
  return <>{props.specs.filter((spec) => !isTyped(spec)).map((spec) => control(spec, props))}</>;
}

/** Options that are typed: fewer need them, and they take room. */
export function TypedOptions(props: Props) {
  const [isOpen, open] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useOutside(box, () => open(false));
  const specs = props.specs.filter((spec) => isTyped(spec) && spec.name !== NOT_SHOWN);
  if (specs.length === 0) return null;
  const set = specs.filter((spec) => (props.values[spec.name] ?? spec.default) !== spec.default).length;
  return (
    <div ref={box} class="grid-menu" onKeyDown={(event) => event.key === "Escape" && open(false)}>
      <button type="button" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
        Options {set > 0 && <span class="muted">{set} set</span>}
      </button>
      {isOpen && <div class="grid-typed">{specs.map((spec) => control(spec, props))}</div>}
    </div>
  );
}

function control(spec: OptionSpec, props: Props) {
  return (
    <Control
      key={spec.name}
      spec={spec}
      value={props.values[spec.name] ?? spec.default}
      onChange={(value) => props.onChange({ ...props.values, [spec.name]: value })}
    />
  );
}

interface ControlProps {
  spec: OptionSpec;
  value: Cell;
  onChange: (value: Cell) => void;
}

function Control(props: ControlProps) {
  const { spec, value, onChange } = props;
  const label = spec.name === "by" ? "Group by" : labelOf(spec.name);
  if (spec.type === "flag") {
    return (
      <label class="grid-check">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />
        {label}
      </label>
    );
  }
  if (spec.parts.length > 0) return <Parts {...props} label={label} />;
  if (spec.type !== "choice") return <Typed {...props} label={label} />;
  if (spec.choices.length <= SIDE_BY_SIDE) {
    const choices = spec.choices.map((choice) => [choice, choice] as const);
    return <Choice label={label} value={String(value)} choices={choices} onChange={onChange} />;
  }
  return (
    <label class="grid-option">
      <span class="muted">{label}</span>
      <select value={String(value)} onChange={(event) => onChange(event.currentTarget.value)}>
        {spec.choices.map((choice) => <option key={choice}>{choice}</option>)}
      </select>
    </label>
  );
}

/** Several words side by side, each pressed or not; one at least is. */
function Parts(props: ControlProps & { label: string }) {
  const { spec, value, label, onChange } = props;
  const chosen = String(value ?? "").split("+");
  const toggle = (part: string) => {
    const next = spec.parts.filter((one) => chosen.includes(one) !== (one === part));
    onChange(next.length > 0 ? next.join("+") : spec.default);
  };
  return (
    <span class="choice" role="group" aria-label={label}>
      <span class="choice-label" aria-hidden="true">{label}</span>
      {spec.parts.map((part) => (
        <button
          key={part}
          type="button"
          aria-pressed={chosen.includes(part)}
          data-chosen={chosen.includes(part)}
          onClick={() => toggle(part)}
        >
          {part}
        </button>
      ))}
    </span>
  );
}

/** A number or a text: taken over by Enter, or when the field is left. */
function Typed(props: ControlProps & { label: string }) {
  const { spec, value, label, onChange } = props;
  const given = value === null ? "" : String(value);
  const [words, setWords] = useState(given);
  useEffect(() => setWords(given), [given]);
  const read = optionValue(spec, words);
  const take = () => {
    if (read !== undefined && read !== value) onChange(read);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter") take();
    if (event.key === "Escape") setWords(given);
  };
  const isNumber = spec.type !== "text";
  return (
    <label class="grid-option">
      <span class="muted">{label}</span>
      <input
        class={isNumber ? "grid-short number" : "grid-long"}
        value={words}
        inputMode={isNumber ? "decimal" : "text"}
        placeholder={isNumber ? "" : "any"}
        aria-invalid={read === undefined}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={keys}
        onBlur={take}
      />
    </label>
  );
}
