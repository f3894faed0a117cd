"""Exchanges options and reports between `selftime run` and the program's processes.

An environment variable passes the run's options to the processes; each of them leaves a report file
in the run's folder. A startup folder, first on `PYTHONPATH`, makes every new Python process read
the variable; see `startup/sitecustomize.py`.
"""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from selftime._version import __version__
from selftime.capture.live_processes import still_runs
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.temporary_folders import folder_prefix

RUN_ENVIRONMENT_VARIABLE: Final = "SELFTIME_RUN"
"""Name of the environment variable that describes a run of selftime, as JSON."""

_REPLACED_PROGRAM_ENDED: Final = "replaced-program-ended"
"""Name of a file in the run's folder, which is there once the program that replaced the first
process by `exec` has come to its end."""

STARTUP_FOLDER: Final = Path(__file__).parent / "startup"


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What was recorded of one process of the program: traces, steps and messages."""

    process: int | None = None
    rank: int | None = None
    """Rank of the process in a distributed job; None outside of one."""
    traces: tuple[Path, ...] = ()
    source: str | None = None
    """What marked the ends of steps, such as `optimizer steps`; None if no step was found."""
    steps_seen: int = 0
    steps_recorded: int = 0
    partial: str | None = None
    reason: str | None = None
    """Why there is no trace; None if there is one."""
    messages: tuple[str, ...] = ()
    """Messages for the user about this process."""
    ledger: Path | None = None
    """Path of the process's wall-time ledger; None if none was written."""
    step_ns_by_kind: Mapping[str, int] = field(default_factory=dict)
    """Maps each kind of step, such as `training`, to the time in ns of all its steps."""
    cpu_threads: int | None = None
    """Number of threads that share an operator on the CPU; None if nothing was recorded, or if a
    device does the work."""
    is_left_out: bool = False
    """Whether `--ranks` leaves the process out, so that it has its ledger alone."""
    still_runs: bool = False
    """Whether the process had not ended when its report was read."""

    @property
    def training_ns(self) -> int:
        """Returns the time in ns of all steps that train."""
        return sum(ns for kind, ns in self.step_ns_by_kind.items() if kind.startswith("training"))

    @property
    def step_ns(self) -> int:
        """Returns the time in ns of all steps."""
        return sum(self.step_ns_by_kind.values())


class RunChannel:
    """Connects `selftime run` with the processes that it records, by a folder of reports."""

    def __init__(self, options: RunOptions, folder: Path, root_pid: int) -> None:
        self.options = options
        self.folder = folder
        """Folder in which processes write their reports during the run."""
        self.root_pid = root_pid
        """Id of the process that waits for the program's end and prints the result."""
        self.shows_results = options.notify is not None
        """Whether to print the result of the run."""
        self.is_guarded = False
        """Whether another process waits for the first one's end, and prints the result if that
        process cannot."""
        self._file_suffix = secrets.token_hex(4)
        self._previous_environment: dict[str, str | None] = {}

    @classmethod
    def create(cls, options: RunOptions) -> "RunChannel":
        """Returns the channel of a new run, started by this process.

        The first report creates the folder, since a program may end without time to delete it.

        Raises:
            OSError: There is no temporary folder.
        """
        name = folder_prefix() + secrets.token_hex(8)
        return cls(options, Path(tempfile.gettempdir(), name), os.getpid())

    @classmethod
    def from_environment(cls) -> "RunChannel | None":
        """Returns the channel named in the environment; None without one of this version."""
        try:
            values = json.loads(os.environ.get(RUN_ENVIRONMENT_VARIABLE, ""))
            if values["version"] != __version__:
                return None
            channel = cls(
                _parse_run_options(values["options"]), Path(values["folder"]), values["root_pid"]
            )
            channel.shows_results = values["shows_results"]
            channel.is_guarded = values["is_guarded"]
        except (ValueError, KeyError, TypeError):
            return None
        return channel

    def __enter__(self) -> None:
        values = {
            "version": __version__,
            "folder": str(self.folder),
            "root_pid": self.root_pid,
            "shows_results": self.shows_results,
            "is_guarded": self.is_guarded,
            "options": _run_options_as_json(self.options),
        }
        path = os.environ.get("PYTHONPATH")
        folders = path.split(os.pathsep) if path else []
        other_folders = [folder for folder in folders if folder != str(STARTUP_FOLDER)]
        self._set_environment_variable(RUN_ENVIRONMENT_VARIABLE, json.dumps(values))
        self._set_environment_variable(
            "PYTHONPATH", os.pathsep.join([str(STARTUP_FOLDER), *other_folders])
        )

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Restores the environment and deletes the folder, in the process that started the run."""
        if os.getpid() != self.root_pid:
            return
        for name, value in self._previous_environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.remove_folder()

    def remove_folder(self) -> None:
        """Deletes the folder with the reports of processes."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def write_report(self, report: ProcessReport) -> None:
        """Writes the report of this process to the folder; ignores errors."""
        report_path = self.folder / f"{report.process}-{self._file_suffix}.json"
        temporary = report_path.with_suffix(".tmp")
        with suppress(OSError):  # the root has ended, or the disk is full
            self.folder.mkdir(mode=0o700, exist_ok=True)
            temporary.write_text(json.dumps(asdict(report), default=str), encoding="utf-8")
            temporary.replace(report_path)

    def note_end_of_replaced_program(self) -> None:
        """Takes note that what replaced the first process by `exec` came to its end."""
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            (self.folder / _REPLACED_PROGRAM_ENDED).touch()

    @property
    def has_replaced_program_ended(self) -> bool:
        return (self.folder / _REPLACED_PROGRAM_ENDED).exists()

    def read_reports(self) -> list[ProcessReport]:
        """Returns the reports of all processes that wrote one."""
        return [_read_process_report(path) for path in sorted(self.folder.glob("*.json"))]

    def _set_environment_variable(self, name: str, value: str) -> None:
        self._previous_environment[name] = os.environ.get(name)
        os.environ[name] = value


def _read_process_report(path: Path) -> ProcessReport:
    report = _parse_process_report(json.loads(path.read_text()))
    runs = report.process is not None and still_runs(report.process, path.stat().st_mtime)
    return replace(report, still_runs=runs)


def _parse_process_report(values: Mapping[str, Any]) -> ProcessReport:
    messages = values.get("messages", ())
    traces = tuple(map(Path, values.get("traces", ())))
    ledger = values.get("ledger")
    paths = {"traces": traces, "ledger": None if ledger is None else Path(ledger)}
    return ProcessReport(**{**values, **paths, "messages": tuple(messages)})


def _run_options_as_json(options: RunOptions) -> dict[str, Any]:
    """Returns recording options as JSON values, without the function `notify`."""
    values = {f.name: getattr(options, f.name) for f in fields(options) if f.name != "notify"}
    return {name: str(v) if isinstance(v, Path) else v for name, v in values.items()}


def _parse_run_options(values: dict[str, Any]) -> RunOptions:
    return RunOptions(**{**values, "folder": Path(values["folder"])})
