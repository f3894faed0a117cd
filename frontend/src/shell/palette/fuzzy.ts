// Fuzzy match, as in editors: the letters of each word in order, best where words begin or letters
// follow one another.

export interface Match {
  score: number;
  /** Indices of the matched characters, in order. */
  places: number[];
}

const FIRST = 10;
const WORD_BEGIN = 7;
const FOLLOWING = 7;
const SAME_CASE = 1;
/** What each character of the text costs, so that of equal matches the shorter text is first. */
const LENGTH = 0.05;
/** Longest text that is looked at. */
const MOST = 300;

/** How well a text matches; null if it lacks a letter. Words may be in any order. */
export function fuzzyMatch(asked: string, text: string): Match | null {
  const words = asked.trim().split(/\s+/).filter((word) => word !== "");
  const shown = text.slice(0, MOST);
  let score = -LENGTH * shown.length;
  const places = new Set<number>();
  for (const word of words) {
    const found = wordMatch(word, shown);
    if (found === null) return null;
    score += found.score;
    for (const place of found.places) places.add(place);
  }
  return { score, places: [...places].sort((a, b) => a - b) };
}

/** The best way to find the letters of a word in a text, by dynamic programming. */
function wordMatch(word: string, text: string): Match | null {
  const [letters, lower] = [word.toLowerCase(), text.toLowerCase()];
  if (!isWithin(letters, lower)) return null;
  const gains = Array.from(lower, (_, at) => gainAt(text, at));
  let best = new Float64Array(lower.length).fill(Number.NEGATIVE_INFINITY);
  const ways: Int32Array[] = [];
  for (let letter = 0; letter < letters.length; letter += 1) {
    const next = new Float64Array(lower.length).fill(Number.NEGATIVE_INFINITY);
    const way = new Int32Array(lower.length).fill(-1);
    let before = -1; // the best end of the letters so far, before the character that follows `at`
    for (let at = 0; at < lower.length; at += 1) {
      if (lower[at] === letters[letter]) {
        const gain = (gains[at] ?? 0) + (text[at] === word[letter] ? SAME_CASE : 0);
        const follows = at > 0 ? (best[at - 1] ?? 0) + FOLLOWING : Number.NEGATIVE_INFINITY;
        const jumps = before < 0 ? Number.NEGATIVE_INFINITY : (best[before] ?? 0);
        next[at] = letter === 0 ? gain : Math.max(follows, jumps) + gain;
        way[at] = follows >= jumps ? at - 1 : before;
      }
      if (letter > 0 && (before < 0 || (best[at] ?? 0) > (best[before] ?? 0))) before = at;
    }
    best = next;
    ways.push(way);
  }
  return traced(best, ways);
}

/** The end with the best score, and the way to it. */
function traced(best: Float64Array, ways: readonly Int32Array[]): Match | null {
  let at = best.reduce((known, score, place) => (score > (best[known] ?? 0) ? place : known), 0);
  const score = best[at] ?? Number.NEGATIVE_INFINITY;
  if (score === Number.NEGATIVE_INFINITY) return null;
  const places: number[] = [];
  for (let letter = ways.length - 1; letter >= 0; letter -= 1) {
    places.unshift(at);
    at = ways[letter]?.[at] ?? -1;
  }
  return { score, places };
}

function isWithin(letters: string, text: string): boolean {
  let at = -1;
  return [...letters].every((letter) => (at = text.indexOf(letter, at + 1)) >= 0);
}

/** What a match at a character is worth by where it stands. */
function gainAt(text: string, at: number): number {
  if (at === 0) return FIRST;
  const [before = "", here = ""] = [text[at - 1], text[at]];
  if (!/[\p{L}\p{N}]/u.test(before)) return WORD_BEGIN;
  return /\p{Ll}/u.test(before) && /\p{Lu}/u.test(here) ? WORD_BEGIN : 1;
}
