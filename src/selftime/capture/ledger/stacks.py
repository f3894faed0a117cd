"""Finds in a Python stack the user's source line and the activity, such as an import."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from types import FrameType
from typing import Any, Final

from selftime.capture.lines.sources import SourceFiles

_OURS: Final = f"{os.sep}selftime{os.sep}capture{os.sep}"
_RUNS_THE_PROGRAM: Final = tuple(
    os.sep + os.path.join("selftime", *parts)  # noqa: PTH118 - compared with texts
    for parts in (("cli", ""), ("capture", "program", "python_program.py"))
)
"""Parts of paths of the files that run the program: what called them is not the user's."""
_FOLDERS: Final = (
    ("compile", ("torch/_dynamo/convert_frame.py", "torch/_inductor/", "torch/_functorch/_aot")),
    ("checkpoint", ("torch/serialization.py", "torch/distributed/checkpoint/", "safetensors/")),
    ("data_wait", ("torch/utils/data/dataloader.py",)),
    (
        "processes",
        (
            *(
                "multiprocessing/process.py",
                "multiprocessing/popen_",
                "multiprocessing/connection.py",
            ),
            *("multiprocessing/pool.py", "subprocess.py", "torch/multiprocessing/spawn.py"),
        ),
    ),
    ("logging", ("tqdm/", "logging/__init__.py", "tensorboard/summary/", "wandb/", "rich/")),
)
"""Pairs (activity, parts of file paths): a frame of a file whose path contains such a part shows
that activity."""

_IMPORT: Final = "<frozen importlib._bootstrap>"


@dataclass(frozen=True, slots=True)
class Activity:
    """What a thread was doing when its stack was sampled: an activity and the user's line."""

    part: str
    """Name of the activity, such as `imports`; `program` if the stack shows only the user's own
    code."""
    what: str = ""
    """Name of the package that is being imported, or of the function that reads or writes a
    checkpoint, such as `save`; empty for other activities."""
    file: str | None = None
    line: int | None = None
    function: str | None = None
    """Name of the innermost function of the user's code; `file` and `line` say where it runs.
    All are None if no user code is on the stack."""


class StackReader:
    """Finds the activity and the user's line in stacks; caches what it knows of each file."""

    def __init__(self, own: Callable[[], Sequence[str]] = tuple) -> None:
        self._own = own
        self._sources: SourceFiles | None = None
        self._parts: dict[str, str | None] = {}
        self._users: dict[str, bool] = {}
        self._runners: dict[str, bool] = {}

    def prepare(self) -> None:
        """Finds the folders of the user in this thread, so that a first reading is quick."""
        if self._sources is None:
            self._sources = SourceFiles(self._own())

    def read(self, innermost: FrameType | None) -> Activity:
        """Returns the user's innermost line on a stack, and the activity that this line called.

        Of the frames that the line called the outermost one that tells a part decides: an import
        that compiles something is an import.
        """
        part, what = "program", ""
        frame = innermost
        while frame is not None:
            code = frame.f_code
            if self._runs_program(code.co_filename):
                break
            if self.is_user_file(code.co_filename):
                return Activity(part, what, code.co_filename, frame.f_lineno, code.co_name)
            told = self._part(code.co_filename)
            if told is not None:
                part, what = told, _object_of_part(told, frame)
            frame = frame.f_back
        return Activity(part, what)

    def activity_at(
        self,
        place: tuple[str | None, int | None, str | None],
        imported: str | None,
        library: str | None,
    ) -> Activity:
        """Returns the activity at a place (file, line and function) that was read elsewhere.

        Args:
            place: The innermost one outside of libraries; None each if there is none.
            imported: The module that this line imports; None if it imports none.
            library: The outermost library file that this line called; None if it called none.
        """
        part = "imports" if imported is not None else library and self._part(library)
        what = "" if imported is None else imported.partition(".")[0]
        if place[0] is None or not self.is_user_file(place[0]):
            place = None, None, None
        return Activity(part or "program", what, *place)

    def user_files(self) -> list[str]:
        """Returns the names of the user's files on the stacks that were read."""
        return [file for file, is_users in self._users.items() if is_users]

    def _runs_program(self, file: str) -> bool:
        if file not in self._runners:
            self._runners[file] = any(path in file for path in _RUNS_THE_PROGRAM)
        return self._runners[file]

    def _part(self, file: str) -> str | None:
        if file not in self._parts:
            self._parts[file] = _part_of(file)
        return self._parts[file]

    def is_user_file(self, file: str) -> bool:
        """Returns whether a file is the user's own code."""
        if file not in self._users:
            if self._sources is None:
                self._sources = SourceFiles(self._own())
            self._users[file] = self._sources.user_file(file) is not None
        return self._users[file]


def _part_of(file: str) -> str | None:
    if file == _IMPORT:
        return "imports"
    if _OURS in file:
        return None
    text = file.replace(os.sep, "/")
    return next((part for part, pieces in _FOLDERS if any(p in text for p in pieces)), None)


def _object_of_part(part: str, frame: FrameType) -> str:
    """Returns the imported package, or the name of the function for checkpoints; else empty."""
    if part == "imports":
        return _imported(frame)
    return frame.f_code.co_name if part == "checkpoint" else ""


def _imported(frame: FrameType) -> str:
    """Returns the top-level package that a frame of Python's import system imports."""
    name = frame.f_locals.get("name")
    return name.partition(".")[0] if isinstance(name, str) else ""


MAX_ACTIVITIES: Final = 10_000
"""Largest number of distinct activities in one ledger: samples of further ones are dropped."""


class StackReadings:
    """Sums the time of each activity in a segment, from stack samples."""

    def __init__(self) -> None:
        self._activities: dict[Activity, int] = {}
        """The number of each activity that the ledger names."""
        self.summed: dict[int, list[int]] = {}
        """[time in ns, number of samples] by number of the activity, of the current segment."""
        self._first: deque[tuple[int, int, int]] = deque(maxlen=MAX_ACTIVITIES)
        """Time in ns, activity and duration in ns of each sample before the first step: that step
        may turn out to have begun earlier."""
        self._written: tuple[int, dict[int, list[int]]] = (0, {})
        """A segment, and what of its readings `take_new` has returned so far."""

    def add(
        self, activity: Activity, duration: int, *, is_before_first_step: bool
    ) -> dict[str, Any] | None:
        """Adds a sample that represents `duration` ns of the current segment.

        Returns:
            The ledger's line that gives the activity its number, the first time; else None.
        """
        number, line = self.number(activity)
        if number is None:
            return None
        summed = self.summed.setdefault(number, [0, 0])
        summed[0] += duration
        summed[1] += 1
        if is_before_first_step:
            self._first.append((perf_counter_ns(), number, duration))
        return line

    def number(self, activity: Activity) -> tuple[int | None, dict[str, Any] | None]:
        """Returns an activity's number, and the ledger's line that gives it, the first time.

        The number is None if there are too many activities; the line is None later.
        """
        number = self._activities.get(activity)
        if number is not None or len(self._activities) >= MAX_ACTIVITIES:
            return number, None
        number = self._activities[activity] = len(self._activities)
        return number, {"activity": number, **_known_fields(activity)}

    def take(self) -> list[list[int]]:
        """Returns [activity, time in ns, number of samples] of the segment that ends."""
        self._first.clear()
        summed, self.summed = self.summed, {}
        return [[number, *known] for number, known in summed.items()]

    def take_new(self, segment: int) -> list[list[int]]:
        """Returns [activity, ns, number of samples] of a segment since the last call of this.

        `take` returns all of them nevertheless.
        """
        before = self._written[1] if self._written[0] == segment else {}
        self._written = segment, {number: list(known) for number, known in self.summed.items()}
        differences = (
            [
                number,
                *(
                    value - old
                    for value, old in zip(known, before.get(number, (0, 0)), strict=True)
                ),
            ]
            for number, known in self.summed.items()
        )
        return [difference for difference in differences if difference[2]]

    def take_before(self, at: int) -> list[list[int]]:
        """Returns what `take` does for samples before an instant, in ns; the others stay.

        Only of the segment before the first step.
        """
        later: dict[int, list[int]] = {}
        for read_ns, number, duration in self._first:
            if read_ns - duration // 2 > at:
                taken, known = later.setdefault(number, [0, 0]), self.summed[number]
                taken[:] = taken[0] + duration, taken[1] + 1
                known[:] = known[0] - duration, known[1] - 1
        self._first.clear()
        before = [[number, *known] for number, known in self.summed.items() if known[1]]
        self.summed = later
        return before


def _known_fields(activity: Activity) -> dict[str, Any]:
    told: dict[str, Any] = {"part": activity.part, "what": activity.what, "file": activity.file}
    told |= {"line": activity.line, "function": activity.function}
    return {key: value for key, value in told.items() if value}
