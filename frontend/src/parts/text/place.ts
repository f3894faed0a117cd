// A file and a line of it as people read them; twin of `place_text` in names/notebook_cells.py.

const CELL = /^(?:cell \d+(?: \([^)\n]+\))?|notebook cell \([^)\n]+\))$/;

/** Whether what stands for a file is the name of a notebook's cell, such as `cell 3`. */
export function isCell(file: string): boolean {
  return CELL.test(file);
}

/** `train.py:8`, or `cell 3, line 8`; the file alone if the line is not known. */
export function placeText(file: string, line: number | string | null | undefined): string {
  if (line === null || line === undefined) return file;
  return isCell(file) ? `${file}, line ${line}` : `${file}:${line}`;
}
