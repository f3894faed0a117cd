// The address of a moment in the timeline.

/** The parameters that show a slice, or an instant, with some room on both sides. */
export function timelineLinkParameters(start: number, duration: number, slice?: number): Record<string, string> {
  const room = Math.max(Math.round(duration * 1.5), 20_000);
  const from = Math.max(Math.round(start) - room, 0);
  const to = Math.round(start + duration) + room;
  return { from: String(from), to: String(to), ...(slice === undefined ? {} : { slice: String(slice) }) };
}
