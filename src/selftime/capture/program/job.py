"""A run and the processes that belong to it: what they are told, and what they report.

The processes learn of the run by one variable of the environment, and leave a file each in its
folder. A start-up folder, first on `PYTHONPATH`, makes every new Python process look for the
variable; see `startup/sitecustomize.py`.
"""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from selftime._version import __version__
from selftime.capture.recorder.run_options import RunOptions

VARIABLE: Final = "SELFTIME_RUN"
"""The variable of the environment that holds a run, as JSON."""

STARTUP: Final = Path(__file__).parent / "startup"


@dataclass(frozen=True, slots=True)
class Report:
    """What was recorded of one process."""

    process: int | None = None
    rank: int | None = None
    """Its rank, where it is part of a distributed job."""
    traces: tuple[Path, ...] = ()
    source: str | None = None
    """What told where steps end; None if no step was found."""
    steps_seen: int = 0
    steps_recorded: int = 0
    partial: str | None = None
    reason: str | None = None
    """Why there is no trace, if there is none."""
    said: tuple[str, ...] = ()
    """Sentences for the user."""


class Job:
    """One `selftime run`; in its own process it is a context, in the others it is read."""

    def __init__(self, options: RunOptions, folder: Path, root: int) -> None:
        self.options = options
        self.folder = folder
        """Where reports lie while the run lasts."""
        self.root = root
        """The process that waits for the end and gives the answer."""
        self.talks = options.notify is not None
        """Whether the answer is wanted."""
        self._mark = secrets.token_hex(4)
        self._before: dict[str, str | None] = {}

    @classmethod
    def begun(cls, options: RunOptions) -> "Job":
        """A new run, rooted in this process; an OSError if there is no temporary folder.

        The first report makes the folder of reports: a program may end without leaving us the time
        to remove it.
        """
        name = f"selftime-run-{os.getpid()}-{secrets.token_hex(8)}"
        return cls(options, Path(tempfile.gettempdir(), name), os.getpid())

    @classmethod
    def of_environment(cls) -> "Job | None":
        """The run that this process belongs to; None if it is another version's."""
        try:
            told = json.loads(os.environ.get(VARIABLE, ""))
            if told["version"] != __version__:
                return None
            job = cls(_options(told["options"]), Path(told["folder"]), told["root"])
            job.talks = told["talks"]
        except (ValueError, KeyError, TypeError):
            return None
        return job

    def __enter__(self) -> None:
        told = {
            "version": __version__,
            "folder": str(self.folder),
            "root": self.root,
            "talks": self.talks,
            "options": _plain(self.options),
        }
        path = os.environ.get("PYTHONPATH")
        others = [] if not path else [p for p in path.split(os.pathsep) if p != str(STARTUP)]
        self._set(VARIABLE, json.dumps(told))
        self._set("PYTHONPATH", os.pathsep.join([str(STARTUP), *others]))

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """In the root: the environment as it was, and the folder gone."""
        if os.getpid() != self.root:
            return
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.close()

    def close(self) -> None:
        """Read no more reports."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def report(self, report: Report) -> None:
        """Leave word of a process in place of what was left before; nobody may be waiting."""
        final = self.folder / f"{report.process}-{self._mark}.json"
        temporary = final.with_suffix(".tmp")
        with suppress(OSError):  # the root has ended, or the disk is full: the trace stands alone
            self.folder.mkdir(mode=0o700, exist_ok=True)
            temporary.write_text(json.dumps(asdict(report), default=str), encoding="utf-8")
            temporary.replace(final)

    def reports(self) -> list[Report]:
        """What processes other than the root have left, in the order of their ids."""
        return [_report(json.loads(p.read_text())) for p in sorted(self.folder.glob("*.json"))]

    def _set(self, name: str, value: str) -> None:
        self._before[name] = os.environ.get(name)
        os.environ[name] = value


def _report(told: Mapping[str, Any]) -> Report:
    paths, said = told.get("traces", ()), told.get("said", ())
    return Report(**{**told, "traces": tuple(map(Path, paths)), "said": tuple(said)})


def _plain(options: RunOptions) -> dict[str, Any]:
    """The options as JSON holds them; a function stays in its process."""
    values = {f.name: getattr(options, f.name) for f in fields(options) if f.name != "notify"}
    return {name: str(v) if isinstance(v, Path) else v for name, v in values.items()}


def _options(plain: dict[str, Any]) -> RunOptions:
    return RunOptions(**{**plain, "folder": Path(plain["folder"])})
