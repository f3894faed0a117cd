// The shortcut letter of each panel, pressed after `g`.

interface Named {
  name: string;
  title: string;
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/**
 * Letters by the panels' names: initials first, then another letter of the title, then any. Each group
 * takes what those before it have left.
 */
export function panelLetters(...groups: readonly (readonly Named[])[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const free = new Set(ALPHABET);
  const give = (panel: Named, wanted: string) => {
    const letter = [...wanted].find((known) => free.has(known));
    if (letter === undefined || found.has(panel.name)) return;
    free.delete(letter);
    found.set(panel.name, letter);
  };
  for (const panels of groups) {
    for (const panel of panels) give(panel, panel.title.slice(0, 1).toLowerCase());
    for (const panel of panels) give(panel, panel.title.toLowerCase());
    for (const panel of panels) give(panel, ALPHABET);
  }
  return found;
}
