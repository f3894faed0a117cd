// A choice of one of a few, side by side. Arrow keys move within it.

import "./choice.css";

export interface Chosen<T extends string> {
  label: string;
  value: T;
  choices: readonly (readonly [value: T, text: string, title?: string])[];
  onChange: (value: T) => void;
}

export function Choice<T extends string>(props: Chosen<T>) {
  const { label, value, choices, onChange } = props;
  const moved = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const at = choices.findIndex(([known]) => known === value);
    const next = choices[(at + by + choices.length) % choices.length];
    if (next === undefined) return;
    onChange(next[0]);
    const group = (event.currentTarget as HTMLElement).querySelectorAll("button");
    group[choices.indexOf(next)]?.focus();
  };
  return (
    <span class="choice" role="radiogroup" aria-label={label} onKeyDown={moved}>
      <span class="choice-label" aria-hidden="true">{label}</span>
      {choices.map(([known, text, title]) => (
        <button
          key={known}
          type="button"
          role="radio"
          aria-checked={known === value}
          tabIndex={known === value ? 0 : -1}
          title={title}
          onClick={() => onChange(known)}
        >
          {text}
        </button>
      ))}
    </span>
  );
}
