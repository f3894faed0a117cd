"""Gathers from the lines of a growing ledger how far its process has come."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from selftime.ingest.ledger_progress.step_columns import StepColumns
from selftime.ledger_format import LEDGER_FORMAT
from selftime.names import parse_rank_number
from selftime.rank_progress import Activity, RankProgress

_RECENT_SAMPLES: Final = 64
"""Number of the latest stacks of usual steps that are kept."""
_MAX_TEXT: Final = 4096
"""Longest name of a file or function that is kept."""


class RankLedger:
    """What the lines of one ledger told so far; what is malformed in them is left out."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.is_ledger: bool | None = None
        """Whether the first line is that of a ledger; None as long as there is none."""
        self.job: str | None = None
        """Digest of the job that the process belongs to; None if the ledger does not tell it."""
        self.began_ns = 0
        self._head: dict[str, Any] = {}
        self._to_epoch = 0
        self._decoder = msgspec.json.Decoder()
        self._activities: dict[int, Activity] = {}
        self._steps = StepColumns()
        self._samples: deque[Activity] = deque(maxlen=_RECENT_SAMPLES)
        self._seen = self._activity_at = 0
        self._activity: Activity | None = None
        self._open = (0, 0)
        self._paused = 0
        self._has_device = False
        self._status: str | None = None

    @property
    def rank(self) -> int | None:
        return parse_rank_number(self._head.get("rank"))

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Adds lines of the file, in order."""
        for data in lines:
            try:
                line: Any = self._decoder.decode(data) if data.strip() else None
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                line = None  # cut off, where the process was killed within it
            if self.is_ledger is None and data.strip():
                self.is_ledger = isinstance(line, dict) and line.get("format") == LEDGER_FORMAT
                if self.is_ledger:
                    self._begin(line)
            elif self.is_ledger and isinstance(line, dict):
                self._add(line)

    def progress(self, written_ns: int) -> RankProgress:
        """Returns what is known now of the process, whose file was changed at `written_ns`."""
        began, until = self._open
        is_open = began == self._steps.end and until > began
        return RankProgress(
            source=self.source,
            rank=self.rank,
            process=_number(self._head.get("process")),
            world_size=parse_rank_number(self._head.get("world")),
            began_ns=self.began_ns,
            seen_ns=self._seen + self._to_epoch,
            written_ns=written_ns,
            steps=self._steps.count,
            step_ends_ns=self._steps.ends() + self._to_epoch,
            recent=self._steps.recent(),
            has_device=self._has_device,
            activity=self._activity,
            standing_ns=until - began if is_open else 0,
            is_recording=0 < self._paused == self._seen,
            samples=MappingProxyType(Counter(self._samples)),
            status=self._status,
        )

    def _begin(self, head: dict[str, Any]) -> None:
        self._head = head
        clock = _number(head.get("clock"), 0)
        self._to_epoch = _number(head.get("time"), 0) - clock
        began = _number(head.get("process_began"), _number(head.get("began"), clock))
        self.began_ns = began + self._to_epoch
        self._seen = clock
        self._steps.end = _number(head.get("began"), 0)
        self.job = head["job"] if isinstance(head.get("job"), str) else None

    def _add(self, line: Mapping[str, Any]) -> None:
        number = _number(line.get("activity"))
        if number is not None:
            self._activities[number] = _activity(line)
        if isinstance(samples := line.get("samples"), dict):
            self._add_samples(samples.get("at"), samples.get("activity"))
        if (began := _number(line.get("open"))) is not None:
            self._add_open_segment(began, line)
        elif (start := _number(line.get("segment"))) is not None:
            self._stand_at(start, line.get("readings"))
        if isinstance(segments := line.get("segments"), dict):
            self._steps.add(segments)
            self._seen = max(self._seen, self._steps.end)
        if isinstance(superseded := line.get("superseded"), dict):
            self._steps.remove_superseded(superseded)
        if (paused := _number(line.get("pause"))) is not None:
            self._paused = paused
            self._seen = max(self._seen, paused)
        if (ended := _number(line.get("end"))) is not None:
            self._status, self._seen = str(line.get("status"))[:_MAX_TEXT], max(self._seen, ended)
        self._has_device = self._has_device or "device" in line

    def _add_samples(self, instants: object, numbers: object) -> None:
        if not (isinstance(instants, list) and isinstance(numbers, list)):
            return
        for at, number in zip(instants, numbers, strict=False):
            activity = self._activities.get(number) if type(number) is int else None
            if activity is not None and _number(at) is not None:
                self._samples.append(activity)
                self._stand_at(at, [[number, 0, 1]])

    def _add_open_segment(self, began: int, line: Mapping[str, Any]) -> None:
        until = _number(line.get("until"), began)
        self._open = began, until
        self._seen = max(self._seen, until)
        readings = line.get("readings")
        if isinstance(readings, list):
            readings = sorted((one for one in readings if _is_reading(one)), key=lambda one: one[1])
        self._stand_at(until, readings)

    def _stand_at(self, instant: int, readings: Any) -> None:
        """Takes the last of some readings for what the program does at an instant."""
        last: Any = readings[-1] if isinstance(readings, list) and readings else None
        if _is_reading(last) and last[0] in self._activities and instant >= self._activity_at:
            self._activity, self._activity_at = self._activities[last[0]], instant
        self._seen = max(self._seen, instant)


def _is_reading(told: Any) -> bool:
    return isinstance(told, list) and len(told) == 3 and all(_number(n) is not None for n in told)


def _activity(line: Mapping[str, Any]) -> Activity:
    number = line.get("line")
    return Activity(
        _text(line.get("part")) or "program",
        _text(line.get("file")),
        number if type(number) is int and 0 < number < 1 << 31 else None,
        _text(line.get("function")),
    )


def _text(value: object) -> str | None:
    return value[:_MAX_TEXT] if isinstance(value, str) and value else None


def _number(value: Any, otherwise: Any = None) -> Any:
    return value if type(value) is int and 0 <= value < 1 << 62 else otherwise
