"""Finds what tells of a job that hangs: dumps of the Flight Recorder, and ledgers of runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from selftime import names
from selftime.errors import UnreadableTrace
from selftime.flight_recorder import Dump, HangEvidence, LastSighting
from selftime.ingest.flight_recorder.dump_files import looks_like_dump, read_dump
from selftime.ingest.flight_recorder.ledger_sightings import read_last_sighting
from selftime.ingest.ledger import is_ledger
from selftime.ingest.text.format_detection import read_decompressed_start
from selftime.ingest.trace_paths import NO_SUCH_FILE, folder_and_process
from selftime.ledger_format import LEDGER_SUFFIX

_MAX_LEDGER_BYTES: Final = 1 << 30
_Told = TypeVar("_Told", Dump, LastSighting)


def read_hang_evidence(paths: Sequence[str]) -> HangEvidence:
    """Returns what dumps and ledgers tell, of files, and of folders with all that is below them.

    A file that cannot be read is listed with its reason; the others hold.

    Raises:
        UnreadableTrace: A path does not exist, or none of the files is a dump or a ledger.
    """
    described = ", ".join(f"`{path}`" for path in paths)
    files = sorted({file for path in paths for file in _files(path)})
    found, unread = _read_all(files)
    dumps = _by_rank(one for one in found if isinstance(one, Dump))
    sightings = _by_rank(one for one in found if isinstance(one, LastSighting))
    if not dumps and not sightings:
        why = unread[0][1] if unread else "none of its files is one"
        raise UnreadableTrace(
            f"{described} {'holds' if len(paths) == 1 else 'hold'} no dump of the Flight Recorder "
            f"and no ledger of a run: {why}"
        )
    judged = {rank: max(dumps[rank], key=_order) for rank in sorted(dumps)}
    of_this_run = _of_this_run(sightings, judged)
    unread += [
        (seen.source, f"it is a ledger of rank {seen.rank} in another run")
        for found_of_rank in sightings.values()
        for seen in found_of_rank
        if of_this_run.get(seen.rank) is not seen
    ]
    return HangEvidence(
        dumps=MappingProxyType(judged),
        sightings=MappingProxyType(of_this_run),
        unread=tuple(sorted(unread)),
        superseded=tuple(
            (rank, dump.source)
            for rank in sorted(dumps)
            for dump in sorted(dumps[rank], key=lambda dump: dump.source)
            if dump is not judged[rank]
        ),
        other_files=found.count(None),
    )


def _read_all(
    files: Sequence[Path],
) -> tuple[list[Dump | LastSighting | None], list[tuple[str, str]]]:
    """Returns what each file tells, and path and reason of each that cannot be read."""
    ranks_by_process = _ranks_by_process(files)
    read = [(file, _read_or_reason(file, ranks_by_process)) for file in files]
    found = [told for _, told in read if not isinstance(told, str)]
    return found, [(str(file), told) for file, told in read if isinstance(told, str)]


def _read_or_reason(
    file: Path, ranks_by_process: Mapping[tuple[Path, tuple[str, ...]], int]
) -> Dump | LastSighting | str | None:
    """Returns what a file tells, or the reason why it cannot be read."""
    try:
        return _read(file, ranks_by_process)
    except UnreadableTrace as error:
        return str(error).removeprefix(f"`{file}` cannot be read: ")


def _by_rank(told: Iterable[_Told]) -> dict[int, list[_Told]]:
    by_rank: dict[int, list[_Told]] = {}
    for one in told:
        by_rank.setdefault(one.rank, []).append(one)
    return by_rank


def _files(path: str) -> Iterator[Path]:
    """Yields the regular files of a path, a folder or a pattern."""
    if not path:
        raise UnreadableTrace("the path is empty; name a file, or a folder: `.` is this one")
    try:
        if Path(path).is_dir():
            yield from (file for file in Path(path).rglob("*") if file.is_file())
            return
        if Path(path).exists() or not has_magic(path):
            if not Path(path).is_file():
                raise UnreadableTrace(f"`{path}` cannot be read: {NO_SUCH_FILE}")
            yield Path(path)
            return
    except OSError as error:
        raise UnreadableTrace(f"`{path}` cannot be read: {error.strerror or error}") from error
    found = [Path(name) for name in glob(path, recursive=True)]  # noqa: PTH207 - `Path.glob` wants the folder apart
    if not found:
        raise UnreadableTrace(f"`{path}` cannot be read: it matches no file")
    yield from (file for file in found if file.is_file())


def _ranks_by_process(files: Iterable[Path]) -> dict[tuple[Path, tuple[str, ...]], int]:
    """Returns ranks by process, of the names of traces, which lie beside their ledgers."""
    beside = {
        other
        for folder in {file.parent for file in files if file.name.endswith(LEDGER_SUFFIX)}
        for other in folder.iterdir()
    }
    return {
        folder_and_process(file): rank
        for file in beside
        if (rank := names.rank_in_file_name(file.name)) is not None
    }


def _read(
    file: Path, ranks_by_process: Mapping[tuple[Path, tuple[str, ...]], int]
) -> Dump | LastSighting | None:
    """Returns what a file tells; None if it is neither a dump nor a ledger."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise UnreadableTrace(error.strerror or str(error)) from error
    if not size:
        raise UnreadableTrace("it is empty: its process ended before it wrote it")
    start = read_decompressed_start(file)
    if is_ledger(start):
        if size > _MAX_LEDGER_BYTES:
            raise UnreadableTrace(f"it is a ledger of more than {_MAX_LEDGER_BYTES >> 30} GiB")
        rank = ranks_by_process.get(folder_and_process(file))
        return read_last_sighting(_bytes(file), rank, str(file))
    return read_dump(file) if looks_like_dump(start, size) else None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UnreadableTrace(error.strerror or str(error)) from error


def _order(dump: Dump) -> tuple[int, bool, str]:
    """Returns what is larger for the dump of a rank that tells more: it is later, or has lines."""
    return dump.latest_ns, any(call.place is not None for call in dump.calls), dump.source


def _of_this_run(
    sightings: Mapping[int, list[LastSighting]], dumps: Mapping[int, Dump]
) -> dict[int, LastSighting]:
    """Returns by rank the last sighting in the run of the dumps, or in the latest run without one.

    Its ledger was begun before the last call of the dumps, and not ended before their first.
    """
    latest = max((dump.latest_ns for dump in dumps.values()), default=0)
    created = [call.created_ns for dump in dumps.values() for call in dump.calls if call.created_ns]
    found = {}
    for rank in sorted(sightings):
        fitting = [
            seen
            for seen in sightings[rank]
            if not latest or (seen.began_ns <= latest and seen.last_ns >= min(created, default=0))
        ]
        if fitting:
            found[rank] = max(fitting, key=lambda seen: (seen.last_ns, seen.source))
    return found
