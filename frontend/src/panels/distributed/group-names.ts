// The names of process groups (pure).

/** What PyTorch writes for a group that the program gave no description. */
const NOT_DESCRIBED = "undefined";

/** The description of a group, if the program gave one. */
export function describedAs(description: string | null): string | null {
  return description === NOT_DESCRIBED || description === "" ? null : description;
}
