"""How long `import selftime` takes in a fresh process, less the interpreter's bare start.

Each sample starts two processes, one that does nothing and one that imports, in turn, so that a
busy machine disturbs both alike.
"""

import argparse
import statistics
import subprocess
import sys
import time

from sheets import Column, add_format, show, table

STATEMENTS = (
    "import selftime",
    "import selftime; selftime.load",
    "import selftime.cli",
    "import polars",
)
COLUMNS = (
    Column("statement", "statement"),
    Column("import_ms", "import", "ms"),
    Column("low_ms", "lower quartile", "ms"),
    Column("high_ms", "upper quartile", "ms"),
    Column("bare_ms", "bare start", "ms"),
)


def seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def sample(statement: str, count: int) -> tuple[list[float], list[float]]:
    """Bare starts and starts with the statement, taken in turn."""
    seconds(statement)  # the first run compiles and warms the disk
    pairs = [(seconds("pass"), seconds(statement)) for _ in range(count)]
    bare, full = zip(*pairs, strict=True)
    return list(bare), list(full)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=11, help="samples of each statement (default: 11)")
    add_format(parser)
    options = parser.parse_args()
    rows = []
    for statement in STATEMENTS:
        bare, full = sample(statement, options.n)
        pairs = [s - start for start, s in zip(bare, full, strict=True)]
        low, middle, high = (1e3 * value for value in statistics.quantiles(pairs, n=4))
        figures = {"import_ms": middle, "low_ms": low, "high_ms": high}
        rows.append(
            {"statement": f"`{statement}`", **figures, "bare_ms": 1e3 * statistics.median(bare)}
        )
    title = "Import, less the bare start of Python"
    show([table("import", "time", title, COLUMNS, rows, {"rounds": options.n})], options.format)


if __name__ == "__main__":
    main()
