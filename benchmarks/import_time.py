"""How long `import selftime` takes in a fresh process, less the interpreter's bare start.

Each sample starts two processes, one that does nothing and one that imports, in turn, so that a
busy machine disturbs both alike.
"""

import argparse
import statistics
import subprocess
import sys
import time

STATEMENTS = (
    "import selftime",
    "import selftime; selftime.load",
    "import selftime.cli",
    "import polars",
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
    count = parser.parse_args().n
    print(f"{'statement':<34}{'import':>10}{'quartiles':>20}{'bare start':>14}   (ms)")
    for statement in STATEMENTS:
        bare, full = sample(statement, count)
        start = statistics.median(bare)
        low, middle, high = statistics.quantiles((s - start for s in full), n=4)
        spread = f"{low * 1e3:.1f} … {high * 1e3:.1f}"
        print(f"{statement:<34}{middle * 1e3:>10.1f}{spread:>20}{start * 1e3:>14.1f}")


if __name__ == "__main__":
    main()
