// The rows of a table, asked for in pages as they come into sight, and kept.

import type { Page } from "../../../data/api.ts";

export const PAGE = 200;
/** So many questions are open at a time: who scrolls fast needs only where he stops. */
const OPEN = 2;

export interface Found {
  page: Page;
  /** The row's place in the page. */
  at: number;
}

type Ask = (from: number, rows: number) => Promise<Page>;

export class Rows {
  /** The first answer: totals, counts, and what the recording lacks. */
  head: Page | null = null;
  error: Error | null = null;
  readonly #ask: Ask;
  readonly #changed: () => void;
  /** Pages in the order of their rows; none overlap. */
  readonly #pages: Page[] = [];
  readonly #open = new Set<number>();
  #wanted: [number, number] = [0, PAGE];

  constructor(ask: Ask, changed: () => void) {
    this.#ask = ask;
    this.#changed = changed;
  }

  get total(): number {
    return this.head?.total ?? 0;
  }

  find(row: number): Found | null {
    const place = this.#placeOf(row);
    const page = this.#pages[place];
    return page !== undefined && row < page.from + page.rows ? { page, at: row - page.from } : null;
  }

  /** These rows are in sight, up to before `to`: what is missing of them is asked for. */
  want(from: number, to: number): void {
    this.#wanted = [from, to];
    this.#fill();
  }

  /** The last page that begins at a row or before it; -1 if there is none. */
  #placeOf(row: number): number {
    let [low, high] = [0, this.#pages.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#pages[middle]?.from ?? 0) <= row) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  #fill(): void {
    if (this.error !== null) return;
    const [from, to] = this.#wanted;
    const end = this.head === null ? to : Math.min(to, this.total);
    for (let row = Math.max(from, 0); row < end && this.#open.size < OPEN; ) {
      const found = this.find(row);
      if (found !== null) {
        row = found.page.from + found.page.rows;
        continue;
      }
      const begin = this.#beginOf(row);
      if (!this.#open.has(begin)) this.#fetch(begin);
      row = Math.max(Math.floor(begin / PAGE + 1) * PAGE, row + 1);
      if (this.head === null) return;
    }
  }

  /** Where a missing row's page begins: at a multiple of its size, or where a short page ends. */
  #beginOf(row: number): number {
    const before = this.#pages[this.#placeOf(row)];
    const whole = Math.floor(row / PAGE) * PAGE;
    return before === undefined ? whole : Math.max(whole, before.from + before.rows);
  }

  #fetch(from: number): void {
    this.#open.add(from);
    const after = this.#pages[this.#placeOf(from) + 1];
    const until = Math.min(Math.floor(from / PAGE + 1) * PAGE, after?.from ?? Number.POSITIVE_INFINITY);
    this.#ask(from, until - from).then(
      (page) => this.#arrived(from, page),
      (error: unknown) => this.#failed(from, error),
    );
  }

  #arrived(from: number, page: Page): void {
    this.#open.delete(from);
    this.head ??= page;
    if (page.rows > 0) this.#pages.splice(this.#placeOf(from) + 1, 0, page);
    else if (from < this.total) this.error = new Error("the server returned too few rows");
    this.#changed();
    this.#fill();
  }

  #failed(from: number, error: unknown): void {
    this.#open.delete(from);
    this.error = error instanceof Error ? error : new Error(String(error));
    this.#changed();
  }
}
