// A field to search what a panel shows; `/` leads into it, Escape out of it.

import "./find.css";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Delay in ms after typing before the search starts. */
const REST = 150;

export function Find(props: {
  label: string;
  value: string;
  /** What was found, in words. */
  told?: string | undefined;
  onChange: (text: string) => void;
  onEnter?: () => void;
}) {
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(props.value);
  const told = useRef(props.value);
  // The search text returns through the URL a moment later; more may have been typed by then.
  useEffect(() => {
    if (props.value !== told.current) setTyped(props.value);
    told.current = props.value;
  }, [props.value]);
  useEffect(() => {
    if (typed === told.current) return undefined;
    const later = setTimeout(() => {
      told.current = typed;
      props.onChange(typed);
    }, REST);
    return () => clearTimeout(later);
  }, [typed]);
  // before the field is painted: who sees it may press the key
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      if (event.key !== "/" || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target?.tagName ?? "")) return;
      event.preventDefault();
      field.current?.select();
      field.current?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      if (typed === "") field.current?.blur();
      setTyped("");
    } else if (event.key === "Enter") props.onEnter?.();
  };
  return (
    <label class="find">
      <span class="visually-hidden">{props.label}</span>
      <input
        ref={field}
        type="search"
        value={typed}
        placeholder={props.label}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={keys}
      />
      {props.told && <span class="find-told number" role="status">{props.told}</span>}
    </label>
  );
}
