// Numbers of ranks as ranges: `0 to 3, 8`.

/** `rank 3`, `ranks 0 to 3, 8`; many stretches are counted. */
export function rankListText(ranks: readonly number[], most = 6): string {
  const parts = consecutiveRanges(ranks).map(([from, to]) =>
    from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from} to ${to}`,
  );
  const more = parts.length - most;
  const told = more > 0 ? `${parts.slice(0, most).join(", ")} and more` : parts.join(", ");
  return `${ranks.length === 1 ? "rank" : "ranks"} ${told}`;
}

/** Numbers that follow one another, as first and last. */
export function consecutiveRanges(numbers: readonly number[]): [number, number][] {
  const found: [number, number][] = [];
  for (const number of [...new Set(numbers)].sort((one, other) => one - other)) {
    const last = found.at(-1);
    if (last !== undefined && number === last[1] + 1) last[1] = number;
    else found.push([number, number]);
  }
  return found;
}
