"""Keeps what each commit took: a folder to which every checked run adds one file.

A file is written whole or not at all and never changed, so a run that is killed leaves no damage,
and any number of runs, jobs or branches may add to a folder at once, as may `git merge`. Its name
begins with the time of the recording, and the same recording always has the same name: it is kept
once, however often it is checked.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from selftime.compare.check.baseline_files import RunInFile, refuse_run_without_steps
from selftime.compare.check.measured_runs import MeasuredRun
from selftime.errors import UsageError
from selftime.output_file import make_folder, open_output, report_output_errors
from selftime.trace import Trace

HISTORY_FORMAT: Final = "selftime.history/1"
"""Name and version of the format of the files of a history."""
_MAX_ENTRY_FILE_BYTES: Final = 16 << 20
"""Size in bytes above which a file is no entry of a history."""
_COMMIT_CHARACTERS_IN_NAME: Final = 12
_DIGEST_CHARACTERS_IN_NAME: Final = 8


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit of the program that was recorded."""

    id: str
    time: str | None = None
    """When it was committed, as in ISO 8601; None if unknown."""
    subject: str | None = None
    """The first line of its message; None if unknown."""
    has_changes: bool = False
    """Whether files differed from the commit."""

    @property
    def short_id(self) -> str:
        return self.id[:9]


@dataclass(frozen=True, slots=True, eq=False)
class HistoryEntry:
    """A run in a history: when it was recorded, of which commit, and what it took."""

    recorded_at: str
    """When the recording began, as in ISO 8601."""
    commit: Commit | None
    run: MeasuredRun

    @classmethod
    def from_trace(cls, trace: Trace, commit: Commit | None) -> "HistoryEntry":
        """Returns the entry of a recording.

        Raises:
            SelftimeError: No step of it was measured.
        """
        run = MeasuredRun.from_trace(trace)
        refuse_run_without_steps(run)
        return cls(_iso_time(_begin_ns(trace)), commit, run)

    @property
    def file_name(self) -> str:
        """Returns the name of the entry's file, the same for the same recording."""
        commit = "none" if self.commit is None else self.commit.id[:_COMMIT_CHARACTERS_IN_NAME]
        time = "".join(filter(str.isalnum, self.recorded_at))
        content = json.dumps(self.run.as_json_data(), sort_keys=True)
        digest = sha256(content.encode()).hexdigest()[:_DIGEST_CHARACTERS_IN_NAME]
        return f"{time}-{commit}-{digest}.json"

    def to_json(self) -> str:
        commit = self.commit
        told: dict[str, Any] = {"format": HISTORY_FORMAT, "recorded_at": self.recorded_at}
        told["commit"] = None if commit is None else msgspec.to_builtins(commit)
        return json.dumps({**told, **self.run.as_json_data()}, allow_nan=False) + "\n"

    @property
    def order(self) -> tuple[datetime, datetime]:
        """Returns what entries are sorted by: the time of the commit, then of the recording."""
        recorded = _parsed_time(self.recorded_at)
        time = None if self.commit is None else self.commit.time
        return (recorded if time is None else _parsed_time(time)), recorded


class _EntryFile(RunInFile, forbid_unknown_fields=True, kw_only=True):
    """Content of a file of a history."""

    format: str
    recorded_at: str
    commit: Commit | None


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The runs that a folder keeps, in the order of their commits."""

    entries: tuple[HistoryEntry, ...]
    left_out: tuple[str, ...] = ()
    """Why files of the folder are no entries, one sentence each."""

    @classmethod
    def read(cls, folder: Path) -> "History":
        """Reads all entries of a folder; a folder that does not exist has none.

        Raises:
            UsageError: `folder` is a file, or cannot be read.
        """
        entries, left_out = [], []
        try:
            files = sorted(folder.iterdir()) if folder.exists() else []
        except OSError as error:
            raise UsageError(
                f"`{folder}` cannot be read: {error.strerror}; name a folder with `--history`"
            ) from error
        for file in files:
            if file.suffix == ".json" and not file.name.startswith("."):
                found = _read_entry(file)
                if isinstance(found, str):
                    left_out.append(found)
                else:
                    entries.append(found)
        return cls(tuple(sorted(entries, key=lambda one: one.order)), tuple(left_out))

    def with_entries(self, new: Sequence[HistoryEntry]) -> "History":
        """Returns the history with more entries; those that it has already are kept once."""
        every = {entry.file_name: entry for entry in (*self.entries, *new)}
        ordered = sorted(every.values(), key=lambda one: one.order)
        return History(tuple(ordered), self.left_out)


def keep_entries(folder: Path, entries: Sequence[HistoryEntry]) -> None:
    """Writes a file for each entry, unless it is there.

    Raises:
        SelftimeError: The folder cannot be written.
    """
    with report_output_errors(folder, option="--history"):
        make_folder(folder)
        for entry in entries:
            path = folder / entry.file_name
            if not path.exists():
                with open_output(path) as file:
                    file.write(entry.to_json().encode())


def _read_entry(file: Path) -> HistoryEntry | str:
    """Returns the entry in a file; a sentence if it has none."""
    try:
        with file.open("rb") as opened:
            found = msgspec.json.decode(opened.read(_MAX_ENTRY_FILE_BYTES + 1), type=_EntryFile)
        if found.format != HISTORY_FORMAT:
            return f"`{file.name}` has the format `{found.format[:40]}`, not `{HISTORY_FORMAT}`"
        entry = HistoryEntry(found.recorded_at, found.commit, found.measured_run())
        entry.order  # noqa: B018 - its times can be read
    except OSError as error:
        return f"`{file.name}` cannot be read: {error.strerror}"
    except (msgspec.DecodeError, ValueError) as error:
        return f"`{file.name}` is no entry of a history: {error}"
    return entry


def _parsed_time(text: str) -> datetime:
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


def _iso_time(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, timezone.utc).isoformat(timespec="microseconds")


def _begin_ns(trace: Trace) -> int:
    """Returns when a run or its recording began, in ns since 1970; of a trace without one 0."""
    for known in (trace.run.began_at, trace.origin):
        if known is not None:
            return known
    try:
        return Path(trace.source).stat().st_mtime_ns
    except OSError:  # an address
        return 0
