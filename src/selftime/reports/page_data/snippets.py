"""Reads lines of the profiled program's source files, which the web page shows with their times.

A trace is untrusted and may name any file. A file is read only if the trace names it as the source
of lines or frames, its name ends in `.py`, and it is a regular file of limited size on this
machine; on Windows, opening a UNC path would contact another machine. The text of a notebook's cell
is in the trace itself.
"""

import os
import stat
from pathlib import Path
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.analysis.notebook_cells import source_text_of_cell
from selftime.trace import Trace

_MAX_SOURCE_FILE_BYTES: Final = 2 << 20
"""Largest size of a source file in bytes; larger files are not read."""
_MAX_LINES_PER_RESPONSE: Final = 20_000
"""Largest number of lines of one response."""
_MAX_SOURCE_LINE_CHARACTERS: Final = 2000
"""Largest number of characters of a source line; the rest of a longer line is cut."""
_PYTHON_FILE_SUFFIX: Final = ".py"
_UNC_PATH_PREFIX: Final = "\\\\"
"""Prefix of Windows paths on other machines, which are not read."""


def source_snippet(
    trace: Trace, file: str, first_line: int, line_count: int
) -> dict[str, Any] | None:
    """Returns lines of a source file as the JSON object `Source`; None if it may not be read."""
    text = source_text_of_cell(trace, file)
    if text is None:
        if not file.endswith(_PYTHON_FILE_SUFFIX) or not _does_trace_name_file(trace, file):
            return None
        texts = map(_read_python_file, candidate_source_paths(trace, file))
        text = next((text for text in texts if text is not None), None)
    if text is None:
        return None
    lines = text.splitlines()
    start = min(max(first_line, 1), max(len(lines), 1))
    shown = lines[start - 1 : start - 1 + min(line_count, _MAX_LINES_PER_RESPONSE)]
    cut_lines = [line[:_MAX_SOURCE_LINE_CHARACTERS] for line in shown]
    return {"file": file, "from": start, "lines": cut_lines, "count": len(lines)}


def _does_trace_name_file(trace: Trace, file: str) -> bool:
    """Returns whether the trace names the file as the source of a line or of a Python frame.

    The ledger of its run may name it, too, as the source of a line or of a loop.
    """
    if (trace.run.readings["file"] == file).any():
        return True
    if any(file == loop_file for loop_file, _ in trace.run.loop_lines.values()):
        return True
    if _distinct_strings_of_column(trace.lines["file"]).eq(file).any():
        return True
    frame_prefix = f"{file}("
    frame_names = _distinct_strings_of_column(trace.slices["name"].gather(trace.frame_args["id"]))
    frames = frame_names.filter(frame_names.str.starts_with(frame_prefix)).to_list()
    for column in (trace.op_args["call_stack"], trace.memory["call_stack"]):
        stacks = _distinct_strings_of_column(column)
        for stack in stacks.filter(stacks.str.contains(frame_prefix, literal=True)):
            frames += stack.replace("\n", ";").split(";")
    return any(frame is not None and frame.file == file for frame in map(names.parse_frame, frames))


def _distinct_strings_of_column(column: pl.Series) -> pl.Series:
    return column.drop_nulls().unique().cast(pl.String)


def candidate_source_paths(trace: Trace, file: str) -> list[Path]:
    """Returns the paths where a source file may be; a relative path may fit several folders.

    Frames name files relative to an entry of `sys.path`. The folders are those of the same file in
    the table of lines, the program's working folder, the current folder, and the trace's folder.
    """
    if Path(file).is_absolute():
        return [Path(file)]
    files_of_lines = _distinct_strings_of_column(trace.lines["file"])
    full_paths = files_of_lines.filter(files_of_lines.str.ends_with(f"/{file}")).sort().to_list()
    working_folder = trace.facts.get("cwd")
    working_folders = [working_folder] if isinstance(working_folder, str) else []
    trace_folder = str(Path(trace.source).parent)
    folders = [
        *(text.removesuffix(file) for text in full_paths),
        *working_folders,
        ".",
        trace_folder,
    ]
    return [Path(folder, file) for folder in dict.fromkeys(folders)]


def _read_python_file(path: Path) -> str | None:
    """Returns the text of a regular Python file of limited size; None for any other file."""
    try:
        if path.drive.startswith(_UNC_PATH_PREFIX):
            return None
        real_path = path.resolve(strict=True)
        if real_path.suffix != _PYTHON_FILE_SUFFIX:
            return None
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(real_path, flags)
        with open(handle, "rb") as file:  # noqa: PTH123 - a handle has no path
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SOURCE_FILE_BYTES:
                return None
            return file.read(_MAX_SOURCE_FILE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):  # missing, not readable, or a cycle of links
        return None
