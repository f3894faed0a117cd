// Keyboard navigation between cells.

export const HEAD_ROW = -1;

export interface Place {
  /** `HEAD_ROW` is the head. */
  row: number;
  column: number;
}

/** Where an arrow key or one like it leads; null if the key leads nowhere. */
export function nextCell(
  key: string,
  at: Place,
  size: { rows: number; columns: number; page: number },
  toEnd: boolean,
): Place | null {
  const rows: Record<string, number> = {
    ArrowUp: at.row - 1,
    ArrowDown: at.row + 1,
    PageUp: at.row - size.page,
    PageDown: at.row + size.page,
  };
  const columns: Record<string, number> = {
    ArrowLeft: at.column - 1,
    ArrowRight: at.column + 1,
    Home: 0,
    End: size.columns - 1,
  };
  if (toEnd && (key === "Home" || key === "End")) {
    return { row: key === "Home" ? 0 : size.rows - 1, column: at.column };
  }
  const [row, column] = [rows[key], columns[key]];
  if (row !== undefined) {
    // only one step at a time leads into the head
    const least = key === "ArrowUp" ? HEAD_ROW : Math.min(at.row, 0);
    return { row: Math.max(least, Math.min(row, size.rows - 1)), column: at.column };
  }
  if (column === undefined) return null;
  return { row: at.row, column: Math.max(0, Math.min(column, size.columns - 1)) };
}
