// A table of names with their colour, short form and width, for drawing.

import { VARIANTS, hash } from "../../../draw/colour.ts";
import { shortName } from "../../../draw/names.ts";
import { plain } from "../../../parts/text/plain.ts";

/** The colour variable of each category in style.css. */
const FAMILY: Record<string, Family> = {
  kernel: "kernel",
  concurrent_kernel: "kernel",
  mtia_ccp_events: "kernel",
  hpu_op: "kernel",
  gpu_memcpy: "copy",
  gpu_memset: "copy",
  cpu_op: "operator",
  python_function: "python",
  user_annotation: "mark",
  gpu_user_annotation: "mark",
  mark: "mark",
  query: "mark",
  cuda_sync: "idle",
  cuda_event: "idle",
  xpu_sync: "idle",
};
const CALL = /_(?:runtime|driver)$/;
export const FAMILIES = [
  "operator", "runtime", "kernel", "collective", "copy", "loading", "python", "mark", "idle", "other",
] as const;
export type Family = (typeof FAMILIES)[number];

const COLLECTIVE = /nccl|rccl|gloo:|all_?reduce|all_?gather|reduce_?scatter|broadcast_kernel|c10d::/i;
const LOADING = /DataLoader|dataloader/;

export function familyOf(name: string, category: string): Family {
  const head = name.slice(0, 200);
  const family = CALL.test(category) ? "runtime" : (FAMILY[category] ?? "other");
  if ((family === "kernel" || family === "mark") && COLLECTIVE.test(head)) return "collective";
  if ((family === "operator" || family === "mark") && LOADING.test(head)) return "loading";
  return family;
}

/** The distinct pairs of name and category. */
export class Names {
  readonly texts: string[] = [];
  readonly categories: string[] = [];
  readonly labels: string[] = [];
  /** The colour's index: family times variants plus variant. */
  readonly colours: number[] = [];
  /** Width of the label in pixels; 0 until it is measured. */
  readonly widths: number[] = [];
  readonly #codes = new Map<string, number>();

  code(text: string, category: string): number {
    const key = `${category}\0${text}`;
    const known = this.#codes.get(key);
    if (known !== undefined) return known;
    const code = this.texts.length;
    this.#codes.set(key, code);
    this.texts.push(text);
    this.categories.push(category);
    const label = shortName(text.length > 400 ? text.slice(0, 400) : text);
    // no slice is wide enough for more, and measuring 4 kB costs
    this.labels.push(plain(label.length > 300 ? `${label.slice(0, 300)}…` : label));
    const family = FAMILIES.indexOf(familyOf(text, category));
    this.colours.push(family * VARIANTS + (hash(label) % VARIANTS));
    this.widths.push(0);
    return code;
  }
}
