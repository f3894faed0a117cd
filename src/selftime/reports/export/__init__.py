"""Exports a trace to the file formats of other programs, such as Perfetto and speedscope.

chrome            the trace-event format, for viewers and for selftime itself
chrome_args       arguments of events in that format
perfetto          Perfetto's own format
perfetto_job      all ranks of a job in one Perfetto file
job_clocks        the times of a job's ranks on one clock
perfetto_tracks   tracks of that format
perfetto_fields   numbers of the fields of its messages
protobuf_encoding the encoding of protocol buffers
speedscope        evented profiles
folded_stacks     folded stacks
tables            Parquet and CSV
workbook          Excel workbooks
export_format     the interface of an export, and what several formats share
"""

import os
from pathlib import Path
from typing import Any, Final

from selftime.errors import UsageError
from selftime.reports.export.chrome import CHROME
from selftime.reports.export.export_format import Export, ExportOptions, ExportResult
from selftime.reports.export.folded_stacks import FOLDED
from selftime.reports.export.perfetto_job import PERFETTO
from selftime.reports.export.speedscope import SPEEDSCOPE
from selftime.reports.export.tables import CSV, PARQUET
from selftime.reports.export.workbook import XLSX
from selftime.trace import Job, Trace
from selftime.views import find_view

__all__ = [
    "EXPORTS",
    "Export",
    "ExportOptions",
    "ExportResult",
    "export",
    "export_options",
    "find_format",
]

EXPORTS: Final[dict[str, Export]] = {
    one.name: one for one in (CHROME, PERFETTO, SPEEDSCOPE, FOLDED, PARQUET, CSV, XLSX)
}
"""Every export format, by its name."""


def find_format(name: str) -> Export:
    """Returns the export format of the given name; raises a UsageError if there is none.

    Raises:
        UsageError: There is no such format; the message lists all formats.
    """
    if name not in EXPORTS:
        raise UsageError(f"there is no format `{name}`; there are {', '.join(EXPORTS)}")
    return EXPORTS[name]


def export(
    subject: Trace | Job, output: str | os.PathLike[str], *, to: str, **options: Any
) -> ExportResult:
    """Exports a trace to a file, or to a folder for the formats `parquet` and `csv`.

    Args:
        subject: A trace; a job if the format is Perfetto's or speedscope's.
        output: The file, compressed with gzip if its name ends in `.gz`; or the folder.
        to: The format, one of `EXPORTS`.
        options: For stacks `weight`: "host" (default) or "device"; for tables `views`: names.

    Raises:
        UsageError: There is no such format, or it does not have such an option.
        SelftimeError: It cannot be written.
    """
    export_format, parsed_options = find_format(to), export_options(to, **options)
    if isinstance(subject, Trace):
        return export_format.write(subject, Path(output), parsed_options)
    if export_format.write_job is None:
        raise UsageError(f"`{to}` holds one trace: export each of `job.traces` by itself")
    return export_format.write_job(subject, Path(output), parsed_options)


def export_options(to: str, **options: Any) -> ExportOptions:
    """Returns the options for an export to the format `to`.

    Raises:
        UsageError: The format does not have one of the options.
    """
    export_format = find_format(to)
    for name in options:
        if name != "progress" and name not in export_format.option_names:
            formats_with_it = [
                known_format.name
                for known_format in EXPORTS.values()
                if name in known_format.option_names
            ]
            if not formats_with_it:
                raise UsageError(f"there is no option `{name}`")
            raise UsageError(
                f"`{name}` is no option of `{to}`, only of {' and '.join(formats_with_it)}"
            )
    for view in options.get("views", ()):
        find_view(view)
    return ExportOptions(**options)
