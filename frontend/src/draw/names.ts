// Short forms of names in traces, for narrow places.

const FRAME = /^(?:.*[/\\])?([^/\\]+)\((\d+)\): (.+)$/;

/**
 * What of a name says most: a kernel without its namespaces and template arguments, a Python frame
 * as its function and line.
 */
export function shortName(name: string): string {
  const frame = name.length < 2000 ? FRAME.exec(name) : null;
  if (frame) return `${frame[3]} (${frame[1]}:${frame[2]})`;
  if (name.startsWith("nn.Module: ")) return name.slice(11);
  if (!/[<(]/.test(name) || !(name.includes("::") || name.startsWith("void "))) return name;
  return template(name);
}

function template(name: string): string {
  const bare = name.replace(/^void /, "").replaceAll("(anonymous namespace)::", "");
  const end = bare.search(/[<(]/);
  const head = end < 0 ? bare : bare.slice(0, end);
  const short = head.split("::").at(-1)?.trim();
  return short || name;
}
