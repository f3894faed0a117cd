// Names of kernels and operators in little space: short, and never two alike for two different names.

const LONGEST = 72;
const DIFFERENCE = 36;

export interface Named {
  /** The short name, and the whole one. */
  short: string;
  full: string;
}

/** Short names that tell their names apart: where two would be alike, each has what is its own. */
export function distinctNames(names: readonly Named[]): string[] {
  const cut = names.map(({ short }) => withoutMiddle(short, LONGEST));
  return names.map(({ full }, at) => {
    const alike = names.filter((other, of) => of !== at && cut[of] === cut[at] && other.full !== full);
    const name = cut[at] ?? "";
    if (alike.length === 0) return name;
    return `${withoutMiddle(name, LONGEST - DIFFERENCE)} …${difference(full, alike.map((other) => other.full))}`;
  });
}

/** A text without its middle, which says least of a name. */
export function withoutMiddle(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) / 3);
  return `${text.slice(0, most - 1 - end)}…${text.slice(-end)}`;
}

/** What begins where a name first differs from others like it. */
function difference(name: string, others: readonly string[]): string {
  const from = Math.min(...others.map((other) => shared(name, other)));
  const word = name.slice(0, from).search(/[A-Za-z0-9.]*$/);
  const own = name.slice(word);
  return own.length > DIFFERENCE ? `${own.slice(0, DIFFERENCE - 1)}…` : own;
}

/** The number of characters that two names begin with. */
function shared(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}
