"""Importing packages takes a large part of a short run.

## What it means
Before its first step the program imports packages, and some of them take long.

In the ledger of the run: readings of the Python stack within the import system, by the package that
the program imports. What that package imports itself counts to it. PyTorch is left out: the program
needs it.

## Why it costs
An import reads hundreds of files and runs them, on one thread. A long run does not notice. A short
one, as a test, a job of a few minutes or a command, may spend a good part of its time on a package
of which it uses one function.

## What to do
Remove the import, or import within the function that needs it: `python -X importtime train.py`
lists what takes long.

Nothing is found of a package whose names stand anywhere else in that file, and of what a library or
the `__init__.py` of a package imports: they may be needed, and a later import takes as long. Other
packages may import it as well, so the confidence is low. The finding tells the whole time as the
most, and is reported from a tenth of the run.

## Fires on
Two of five seconds.

    run | before 3 s: imports pandas 2 s at train.py:2, imports torch 1 s at train.py:1
    run | 20 training 100 ms

## Silent on
PyTorch alone.

    run | before 3 s: imports torch 2 s at train.py:1, program 1 s at train.py:7
    run | 20 training 100 ms

A long run.

    run | before 3 s: imports pandas 2 s at train.py:2, imports torch 1 s at train.py:1
    run | 2000 training 100 ms
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.run_lines import reading_error, where_from_reading
from selftime.advice.lines.imported_names import is_import_used
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.run.parts import run_parts
from selftime.trace import Trace
from selftime.units import seconds_text

NEEDED_PACKAGES: Final = ("torch", "selftime")
"""Packages that the program needs, and the one that looks at it."""

FIX_CODE: Final = """def plot(losses):
    import matplotlib.pyplot as plt  # only when it is needed
    ..."""
"""Example code of the fix: import within the function that needs the package."""


@rule(covers=("M9",), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    imports = (
        run_parts(trace.run)
        .filter((pl.col("part") == "imports") & ~pl.col("what").is_in(NEEDED_PACKAGES))
        .sort("duration", descending=True)
    )
    packages = imports.group_by("what", maintain_order=True).agg(
        pl.col("duration").sum(), pl.col("file", "line", "function").first()
    )
    packages = packages.sort("duration", descending=True, maintain_order=True)
    if not packages.height:
        yield Checked("no import but that of PyTorch was seen", is_absent=True)
    for row in packages.iter_rows(named=True):
        yield _outcome(row)


def _outcome(row: dict[str, Any]) -> Outcome:
    package = str(row["what"]).replace("`", "'")
    title = f"Importing `{package}` takes {seconds_text(row['duration'])}"
    is_used = is_import_used(row["file"], row["line"])
    if row["file"] is None or is_used or not names.is_users_file(row["file"]):
        return Checked(f"{title}; it may be needed", run_upper_s=row["duration"] / 1e9)
    text = "Remove the import, or import it where it is needed."
    return Finding(
        title=title,
        where=where_from_reading(row),
        claim=RunClaim(row["duration"], noise_ns=reading_error(1)),
        confidence="low",  # another package may import it as well
        evidence=(Evidence("import, with what it imports itself", row["duration"] / 1e6, "ms"),),
        fix=Fix(text if is_used is None else f"Nothing in this file uses it. {text}", FIX_CODE),
    )
