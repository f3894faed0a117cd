"""What measurements of whole commands share: options, a table for each trace, medians of runs."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from measure import Measured
from medians import middle
from sheets import Table, add_format, show
from traces import add_options

__all__ = ["MeasureTrace", "add_rounds", "measure_traces", "summary"]

MeasureTrace: TypeAlias = Callable[[str, int, argparse.Namespace], Table]
"""Measures a command on the trace of a kind and of so many megabytes."""


def measure_traces(about: str | None, measured: MeasureTrace) -> None:
    """Measure the traces that the command line names, and show a table for each."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    add_options(parser)
    add_format(parser)
    add_rounds(parser)
    options = parser.parse_args()
    tables = [measured(kind, size, options) for size in options.sizes for kind in options.kinds]
    show(tables, options.format)


def add_rounds(parser: argparse.ArgumentParser, rounds: int = 3) -> None:
    parser.add_argument("-n", type=int, default=rounds, help=f"rounds (default: {rounds})")
    parser.add_argument("--limit", type=float, default=900, help="seconds of one run")


def summary(runs: Sequence[Measured]) -> dict[str, Any]:
    well = [run for run in runs if not run.failure]
    return {
        "wall_s": middle([run.wall_s for run in well]),
        "cpu_s": middle([run.cpu_s for run in well]),
        "memory": middle([run.memory for run in well]),
        "failure": next((run.failure for run in runs if run.failure), None),
        "samples": [round(run.wall_s, 3) for run in runs],
    }
