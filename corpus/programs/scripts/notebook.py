"""Run the cells of a notebook, kept as a script with marks, one after another."""

from pathlib import Path

path = Path(__file__).parent / "analysis_cells.py"
lines = path.read_text().splitlines(keepends=True)
starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
cells = []
for start, end in zip(starts, [*starts[1:], len(lines)]):
    cells.append("\n" * start + "".join(lines[start:end]))
namespace = {"__name__": "__main__"}


def run(cell):
    print("In:", cell.strip().splitlines()[0])
    exec(compile(cell, str(path), "exec"), namespace)


for cell in cells[:-1]:
    run(cell)
run(cells[-1])
