// The colour scheme: the reader's choice, else TensorBoard's or the system's, in the root's `data-theme`.

import { useEffect, useState } from "preact/hooks";
import { store, stored } from "../parts/controls/stored.ts";
import { isOuterDark, onOuterColours } from "./tensorboard.ts";

export const CHOICES = ["system", "dark", "light"] as const;
export type Choice = (typeof CHOICES)[number];

const PLACE = "theme";
export const TOLD: Record<Choice, string> = {
  system: "Colours of the system",
  dark: "Dark colours",
  light: "Light colours",
};

function chosen(): Choice {
  const word = stored(PLACE);
  return CHOICES.find((choice) => choice === word) ?? "system";
}

const listeners = new Set<(choice: Choice) => void>();

/** Shows and keeps a choice; the button in the header follows. */
export function chooseScheme(choice: Choice): void {
  store(PLACE, choice);
  for (const told of listeners) told(choice);
}

const DARK = "(prefers-color-scheme: dark)";

function apply(choice: Choice): void {
  const system = isOuterDark() ?? matchMedia(DARK).matches ? "dark" : "light";
  const theme = choice === "system" ? system : choice;
  if (document.documentElement.dataset["theme"] !== theme) {
    document.documentElement.dataset["theme"] = theme;
  }
}

/** Before anything is drawn, so that nothing is drawn in other colours first. */
export function applyStoredScheme(): void {
  apply(chosen());
}

export function SchemeButton() {
  const [choice, set] = useState(chosen);
  useEffect(() => {
    listeners.add(set);
    return () => void listeners.delete(set);
  }, []);
  useEffect(() => {
    apply(choice);
    const follow = () => apply(choice);
    const system = matchMedia(DARK);
    system.addEventListener("change", follow);
    const end = onOuterColours(follow);
    return () => {
      system.removeEventListener("change", follow);
      end();
    };
  }, [choice]);
  const next = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] ?? "system";
  const title = `${TOLD[choice]}; press for: ${TOLD[next].toLowerCase()}`;
  return (
    <button type="button" class="quiet" title={title} aria-label={title} onClick={() => chooseScheme(next)}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5" />
        {choice !== "light" && <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />}
        {choice === "dark" && <path d="M8 2a6 6 0 0 0 0 12z" fill="currentColor" />}
      </svg>
      <span>{choice}</span>
    </button>
  );
}
