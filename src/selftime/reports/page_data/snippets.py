"""Lines of the program's own files, as the page shows them beside a cost.

A trace is data from anywhere, and may name any file. Only files are read that it names as the
source of its lines, that are Python's by their name, that are ordinary files of a sane size, and
that are on this machine: on Windows a path may name another one, which would be asked.
"""

import os
import stat
from pathlib import Path
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.trace import Trace

_MOST_BYTES: Final = 2 << 20
"""Longer files are data, not a program that somebody wrote."""
_MOST_LINES: Final = 20_000
_LONGEST: Final = 2000
"""Characters of a line that are shown."""
_PYTHON: Final = ".py"
_SHARE: Final = "\\\\"
"""How the drive of a path on another machine begins, on Windows."""


def snippet(trace: Trace, file: str, first: int, rows: int) -> dict[str, Any] | None:
    """`Source` of the page's contract; None if the file is not at hand, or not to be shown."""
    if not file.endswith(_PYTHON) or not _is_named(trace, file):
        return None
    for place in places(trace, file):
        text = _text(place)
        if text is not None:
            lines = text.splitlines()
            start = min(max(first, 1), max(len(lines), 1))
            shown = lines[start - 1 : start - 1 + min(rows, _MOST_LINES)]
            told = [line[:_LONGEST] for line in shown]
            return {"file": file, "from": start, "lines": told, "count": len(lines)}
    return None


def _is_named(trace: Trace, file: str) -> bool:
    """Whether the trace names the file as the source of a line or of a Python frame."""
    if _known(trace.lines["file"]).eq(file).any():
        return True
    told = f"{file}("
    framed = _known(trace.slices["name"].gather(trace.frame_args["id"]))
    frames = framed.filter(framed.str.starts_with(told)).to_list()
    for column in (trace.op_args["call_stack"], trace.memory["call_stack"]):
        stacks = _known(column)
        for stack in stacks.filter(stacks.str.contains(told, literal=True)):
            frames += stack.replace("\n", ";").split(";")
    return any(found is not None and found.file == file for found in map(names.frame, frames))


def _known(column: pl.Series) -> pl.Series:
    return column.drop_nulls().unique().cast(pl.String)


def places(trace: Trace, file: str) -> list[Path]:
    """Where a file may lie; one with a relative name: where the program ran, here, by the trace.

    Frames name files from a folder that Python imports from; lines name the same files in full.
    """
    if Path(file).is_absolute():
        return [Path(file)]
    known = _known(trace.lines["file"])
    whole = known.filter(known.str.ends_with(f"/{file}")).sort().to_list()
    ran = trace.facts.get("cwd")
    ran_in = [ran] if isinstance(ran, str) else []
    beside = str(Path(trace.source).parent)
    folders = [*(text.removesuffix(file) for text in whole), *ran_in, ".", beside]
    return [Path(folder, file) for folder in dict.fromkeys(folders)]


def _text(path: Path) -> str | None:
    """The text of an ordinary Python file of a sane size, links followed to such a one only."""
    try:
        if path.drive.startswith(_SHARE):
            return None
        real = path.resolve(strict=True)
        if real.suffix != _PYTHON:
            return None
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(real, flags)
        with open(handle, "rb") as opened:  # noqa: PTH123 - a handle has no path
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
                return None
            return opened.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):  # not there, not ours to read, a circle of links
        return None
