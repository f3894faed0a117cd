// A table as CSV, where no server writes it: in a report. As reports/tables/tabular.py has it.

import type { Cell, Column, Page } from "../../../data/api.ts";
import { plain } from "../../../parts/text/plain.ts";
import { isText, valueAt } from "../../../data/table.ts";

/** At the start, or after what separates cells where a comma is in decimals; signs of full width, too. */
const FORMULA = /(^|;)(?=[ "]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])/g;

function cellOf(value: Cell, unit: Column["unit"]): string {
  if (value === null) return "";
  if (!isText(unit)) return String(value);
  const told = String(value);
  // what a spreadsheet would run is only shown by it
  const shown = plain(told.replace(FORMULA, "$1'"));
  return shown === "" || /[",\n\r]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}

export function csvOf(columns: readonly Column[], pages: readonly Page[]): string {
  const lines = [columns.map((column) => column.name).join(",")];
  for (const page of pages) {
    for (let row = 0; row < page.rows; row += 1) {
      const cells = columns.map(({ name, unit }) => {
        const values = page.columns[name];
        return cellOf(values === undefined ? null : valueAt(values, row), unit);
      });
      lines.push(cells.join(","));
    }
  }
  return `${lines.join("\n")}\n`;
}
