"""Traces from a path, with a progress bar where it takes long, and the choice among several."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

from selftime.cli.boundary import say
from selftime.errors import UnreadableTrace, UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.trace import Trace

Progress: TypeAlias = Callable[[int, "int | None"], None]

_PATIENCE_S: Final = 1.0
"""A read that ends within this shows no bar."""
_MOST_REFUSALS: Final = 5
"""Unreadable files of a folder that are told one by one."""
_MOST_FAULTS: Final = 3
"""Faults of a file that are named."""


def read_traces(path: str, *, choice: str | None = None, every: bool = False) -> "dict[str, Trace]":
    """Reads the traces at `path` and returns them by name.

    Of a folder with several recordings the newest is taken, and a line on stderr says so; of a job
    the newest of each rank.

    Args:
        path: A trace, a folder of them, a pattern or an address.
        choice: Takes all traces with this text in their name instead.
        every: Takes all traces, for what shows several side by side.

    Raises:
        UsageError: No name contains `choice`.
        UnreadableTrace: There is no trace at `path`, or none can be read.
    """
    from selftime.ingest.load import load
    from selftime.trace import Trace

    with bar("Reading") as progress:
        found = load(path, progress=progress)
    if isinstance(found, Trace):
        return {path: found}
    tell_job(found.refused, found.notes)
    named = {name_in(key, path): trace for key, trace in found.traces.items()}
    if choice is not None:
        named = {name: trace for name, trace in named.items() if choice in name}
        if not named:
            raise UsageError(f"no trace in `{path}` has `{choice}` in its name; see `ls {path}`")
    if not named:
        raise UnreadableTrace(f"`{path}` holds no trace that can be read; record one first")
    if choice is None and not every and len(named) > 1:
        return _newest(named, path)
    return named


def _newest(traces: "dict[str, Trace]", path: str) -> "dict[str, Trace]":
    """The trace that was recorded last; if it is of a job, the last one of each of its ranks."""
    from selftime.ingest.ranks import identity_of, members_of

    identities = {name: identity_of(one) for name, one in traces.items()}
    members, _ = members_of(identities, "")
    begins = {name: one.span and one.span[0] for name, one in identities.items()}
    if None in begins.values():  # a trace without a date: then all are ordered by their files
        begins = {name: _modified(one.source) for name, one in traces.items()}
    ordered = sorted(traces, key=lambda name: (begins[name] or 0, name))
    last = members[ordered[-1]]
    if last.rank is None:
        taken = [ordered[-1]]
        said = f"the newest, `{taken[0]}`,"
    else:
        of_job = [name for name in ordered if members[name].run == last.run]
        by_rank = {members[name].rank: name for name in of_job if members[name].rank is not None}
        taken = sorted(by_rank.values(), key=list(traces).index)
        ranks = "rank" if len(taken) == 1 else f"of {len(taken)} ranks"
        said = f"the newest of each {ranks}"
    if len(taken) < len(traces):
        say(
            f"selftime: `{path}` holds {len(traces)} recordings; {said} is read. Name a file to "
            "read another."
        )
    return {name: traces[name] for name in taken}


def _modified(source: str) -> int:
    """When a file was modified last, in ns since 1970; 0 where that is not known."""
    try:
        return Path(source).stat().st_mtime_ns
    except OSError:  # at an address, or within another file
        return 0


def read_one(path: str, *, choice: str | None = None) -> "Trace":
    """The only trace at `path`, or one sentence that asks which."""
    traces = read_traces(path, choice=choice)
    if len(traces) > 1:
        raise UsageError(
            f"`{path}` holds {len(traces)} traces and one is needed; name its file, such as "
            f"`{next(iter(traces.values())).source}`"
        )
    return next(iter(traces.values()))


def file_of(path: str, *, choice: str | None = None, rank: int | None = None) -> str:
    """The file to write anew: `path`, or of a folder the only trace of that name and rank."""
    if not Path(path).is_dir():
        return path
    from selftime.ingest.ranks import identity_of, members_of

    traces = read_traces(path, choice=choice)
    if rank is not None:
        members, _ = members_of({name: identity_of(one) for name, one in traces.items()}, "")
        traces = {name: one for name, one in traces.items() if members[name].rank == rank}
        if not traces:
            raise UsageError(f"no trace in `{path}` says that it is of rank {rank}")
    if len(traces) > 1:
        raise UsageError(
            f"`{path}` holds {len(traces)} such traces and one is written; name its file, such as "
            f"`{next(iter(traces.values())).source}`"
        )
    return next(iter(traces.values())).source


def tell_doubts(traces: "dict[str, Trace]") -> None:
    """A line on stderr for each trace that is damaged, or is not PyTorch's."""
    for name, trace in traces.items():
        if not trace.repairs["note"].all():
            say(f"`{name}` is damaged: {_faults(trace)}; see `selftime view health`")
        if is_foreign(trace):
            say(
                f"`{name}` is not a trace of PyTorch's profiler: it holds no operator, runtime "
                "call or kernel; record one with `selftime run`"
            )


def is_foreign(trace: "Trace") -> bool:
    """Whether it holds nothing that PyTorch's profiler writes."""
    return {"host", "device"}.isdisjoint(trace.tracks["kind"])


def _faults(trace: "Trace") -> str:
    """What was wrong with the file, how often, and how much of it was lost."""
    from selftime.units import count_text

    counted = trace.repairs.filter(~trace.repairs["note"]).select("fault", "count").rows()
    named = [f"{fault} ({count_text(count)})" for fault, count in counted[:_MOST_FAULTS]]
    if len(counted) > _MOST_FAULTS:
        named.append(f"{len(counted) - _MOST_FAULTS} more kinds of fault")
    lost = int(trace.repairs["events_lost"].sum())
    return "; ".join([*named, f"{count_text(lost)} event{'' if lost == 1 else 's'} lost"])


def name_in(key: str, folder: str) -> str:
    """How a trace of a folder is called: its path from there."""
    inside = key.removeprefix(folder).lstrip("/" + os.sep)
    return inside or key


def tell_job(refused: Mapping[str, str], notes: Iterable[str]) -> None:
    """A line on stderr for what was left out of a job, and for what is odd about its ranks."""
    for reason in [refused[path] for path in sorted(refused)][:_MOST_REFUSALS]:
        say(f"Left out: {reason}")
    if len(refused) > _MOST_REFUSALS:
        say(f"Left out {len(refused) - _MOST_REFUSALS} more files that cannot be read.")
    for note in notes:
        say(f"Note: {note}.")


@contextmanager
def bar(
    doing: str, *, counts_bytes: bool = True, clock: Callable[[], float] = monotonic
) -> Iterator[Progress | None]:
    """What may be called with the bytes or parts done and in all; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    shown = Progress(
        TextColumn(doing),
        BarColumn(),
        DownloadColumn() if counts_bytes else MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = shown.add_task(doing, total=None)
    begun = clock()

    def advance(done: int, total: int | None) -> None:
        shown.update(task, completed=done, total=total)
        if clock() - begun >= _PATIENCE_S:
            shown.start()  # again and again does no harm

    try:
        yield advance
    finally:
        shown.stop()
