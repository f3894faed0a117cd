"""A trace in other programs' formats: one file for each format, and all that are written by it.

chrome      the trace-event format: viewers, and selftime again
perfetto    Perfetto's own format; of a job, all ranks in one file
speedscope  evented profiles
stacks      folded stacks
tables      Parquet and CSV

base        what every export has
arrows, chrome_args, json_text, perfetto_tracks, perfetto_schema, wire: what they are made of
"""

import os
from pathlib import Path
from typing import Any, Final

from selftime.errors import UsageError
from selftime.reports.exports.base import Asked, Export, Told
from selftime.reports.exports.chrome import CHROME
from selftime.reports.exports.perfetto import PERFETTO
from selftime.reports.exports.perfetto_job import write_job
from selftime.reports.exports.speedscope import SPEEDSCOPE
from selftime.reports.exports.stacks import FOLDED
from selftime.reports.exports.tables import CSV, PARQUET
from selftime.trace import Job, Trace
from selftime.views import find as find_view

__all__ = ["EXPORTS", "Asked", "Export", "Told", "asked_of", "export", "find", "write_job"]

EXPORTS: Final[dict[str, Export]] = {
    one.name: one for one in (CHROME, PERFETTO, SPEEDSCOPE, FOLDED, PARQUET, CSV)
}
"""Every format, by name."""


def find(name: str) -> Export:
    """The format of that name, or one sentence that lists those there are."""
    if name not in EXPORTS:
        raise UsageError(f"there is no format `{name}`; there are {', '.join(EXPORTS)}")
    return EXPORTS[name]


def export(
    subject: Trace | Job, output: str | os.PathLike[str], *, to: str, **options: Any
) -> Told:
    """Write a trace to a file, or to a folder where the format is one of tables.

    Args:
        subject: A trace; a job if the format is Perfetto's.
        output: The file, packed with gzip if its name ends in `.gz`; or the folder.
        to: The format, one of `EXPORTS`.
        options: `weight` ("host", the default, or "device") of stacks; `views`, names, of tables.

    Raises:
        UsageError: There is no such format, or it does not take what it is given.
        SelftimeError: It cannot be written.
    """
    chosen, asked = find(to), asked_of(to, **options)
    if isinstance(subject, Trace):
        return chosen.write(subject, Path(output), asked)
    if chosen is not PERFETTO:
        raise UsageError(f"`{to}` holds one trace: export each of `job.traces` by itself")
    return write_job(subject, Path(output), asked)


def asked_of(to: str, **options: Any) -> Asked:
    """What a format is asked, if it takes all of that.

    Raises:
        UsageError: It does not.
    """
    chosen = find(to)
    for name in options:
        if name != "progress" and name not in chosen.takes:
            takers = [one.name for one in EXPORTS.values() if name in one.takes]
            if not takers:
                raise UsageError(f"there is no option `{name}`")
            raise UsageError(f"`{to}` has no `{name}`; {' and '.join(takers)} take it")
    for view in options.get("views", ()):
        find_view(view)
    return Asked(**options)
