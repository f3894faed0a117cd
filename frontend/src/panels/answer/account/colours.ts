// The colour of each class of time: the variable of style.css.

export const CLASS_COLOURS: Readonly<Record<string, string>> = {
  compute: "kernel",
  communication: "collective",
  copy: "copy",
  data_wait: "loading",
  launch: "runtime",
  python: "python",
  device_wait: "operator",
  compile: "memory",
  capture: "memory",
  garbage_collection: "mark",
  idle: "idle",
  other: "other",
  small: "line-strong",
};
