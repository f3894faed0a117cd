// What a reader's browser remembers for this page: choices, none of them needed.

/** What was stored under a name; null if nothing was, or if the page has no storage of its own. */
export function stored(name: string): string | null {
  try {
    return localStorage.getItem(`selftime-${name}`);
  } catch {
    return null; // a frame without an origin of its own
  }
}

/** Stores a word under a name; null forgets it. Without storage it lasts as long as the page. */
export function store(name: string, word: string | null): void {
  try {
    if (word === null) localStorage.removeItem(`selftime-${name}`);
    else localStorage.setItem(`selftime-${name}`, word);
  } catch {
    // likewise
  }
}
