"""Device work that is counted from memory is what would be counted from the trace file.

There need be no device: what the recorder would hold of one is drawn, and so is the file.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

pytest.importorskip("torch")

import selftime
from selftime.capture.in_memory import tables
from selftime.capture.in_memory.events import KinetoEvents, are_kineto_events_supported

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        not are_kineto_events_supported(),
        reason="this PyTorch's events tell too little; files are read instead",
    ),
]

PROCESS, ORIGIN = 4321, 1_790_000_000_000_000_000
TABLE = [
    *("name", "kind", "count", "self_cpu_time_total", "cpu_time_total"),
    *("self_device_time_total", "device_time_total", "device_time_max"),
]


@dataclass
class Drawn:
    """One event; times in ns."""

    category: str
    text: str
    start: int
    end: int
    lane: int
    device: int = PROCESS
    correlation: int = 0

    def name(self) -> str:
        return self.text

    def activity_type(self) -> str:
        return self.category

    def start_ns(self) -> int:
        return ORIGIN + self.start

    def end_ns(self) -> int:
        return ORIGIN + self.end

    def device_resource_id(self) -> int:
        return self.lane

    def device_index(self) -> int:
        return self.device

    def correlation_id(self) -> int:
        return self.correlation

    def start_thread_id(self) -> int:
        return self.lane

    def end_thread_id(self) -> int:
        return self.lane

    def is_async(self) -> bool:
        return False

    def is_hidden_event(self) -> bool:
        return False

    def written(self) -> dict[str, Any]:
        """The event in the file."""
        args: dict[str, Any] = {}
        if self.correlation:
            args = {"External id": self.correlation, "correlation": self.correlation}
        if self.device != PROCESS:
            args |= {"device": self.device, "stream": self.lane}
        return {
            "ph": "X",
            "cat": self.category,
            "name": self.text,
            "pid": self.device,
            "tid": self.lane,
            "ts": self.start / 1000,
            "dur": (self.end - self.start) / 1000,
            "args": args,
        }


@dataclass
class Program:
    """Operators of two threads, with calls that launch work on streams of two devices."""

    random: random.Random
    events: list[Drawn] = field(default_factory=list)
    launched: int = 0

    def run(self) -> list[Drawn]:
        for lane in (11, 12):
            now = 0
            while now < 300_000:
                now = self.operator(lane, now, depth=0)
        last = max(event.end for event in self.events)
        self.events.append(Drawn("cuda_runtime", "cudaDeviceSynchronize", last, last + 900, 11))
        return sorted(self.events, key=lambda event: event.start)

    def operator(self, lane: int, now: int, *, depth: int) -> int:
        names = ("aten::mm", "aten::add", "Optimizer.step#SGD.step")
        name = self.random.choice(names)
        category = "user_annotation" if name.startswith("Optimizer") else "cpu_op"
        drawn = Drawn(category, name, now, 0, lane)
        self.events.append(drawn)
        for _ in range(self.random.randrange(4)):
            now += self.random.randrange(1, 2000)
            inner = self.random.random() < 0.5 and depth < 4
            now = self.operator(lane, now, depth=depth + 1) if inner else self.call(lane, now)
        drawn.end = now + self.random.randrange(1, 2000)
        return drawn.end + self.random.randrange(1, 500)

    def call(self, lane: int, now: int) -> int:
        self.launched += 1
        end = now + self.random.randrange(1, 900)
        self.events.append(
            Drawn("cuda_runtime", "cudaLaunchKernel", now, end, lane, correlation=self.launched)
        )
        category, name = self.random.choice(
            [("kernel", "gemm"), ("kernel", "vectorized"), ("gpu_memcpy", "Memcpy HtoD")]
        )
        start = end + self.random.randrange(5000)
        stream, device = self.random.choice([7, 20]), self.random.choice([0, 1])
        work = Drawn(category, name, start, start + self.random.randrange(1, 3000), stream, device)
        work.correlation = self.launched
        self.events.append(work)
        return end


class DrawnEvents(KinetoEvents):
    """Asks what is drawn."""

    def read_numbers(self, method: Any, dtype: Any, indices: Any = None) -> Any:
        return super().read_numbers(of_drawn(method), dtype, indices)

    def read_value_codes(self, method: Any, codes: Any, indices: Any = None) -> Any:
        return super().read_value_codes(of_drawn(method), codes, indices)


def of_drawn(method: Any) -> Callable[[Any], Any]:
    answer: Callable[[Any], Any] = getattr(Drawn, method.__name__, method)
    return answer


@dataclass
class Results:
    """What torch's profiler would hold."""

    drawn: list[Drawn]

    def events(self) -> list[Drawn]:
        return list(self.drawn)


@pytest.fixture(autouse=True)
def _drawn_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "KinetoEvents", DrawnEvents)


def in_memory_trace(drawn: list[Drawn]) -> selftime.Trace | None:
    return tables.trace_tables_of_recording(Results(drawn), tables.OptionalOperatorColumns())


def of_file(drawn: list[Drawn], folder: Path) -> selftime.Trace:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": [event.written() for event in drawn]}))
    trace = selftime.load(path, cache=False)
    assert isinstance(trace, selftime.Trace)
    return trace


def table(trace: selftime.Trace | None, **options: Any) -> pl.DataFrame:
    assert trace is not None
    found = trace.view("operators", **options).select(TABLE)
    return found.cast({"name": pl.String}).sort(TABLE, nulls_last=True)


@pytest.mark.parametrize("seed", range(5))
def test_is_what_the_file_tells(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - draws programs
    drawn = Program(chance).run()
    file = of_file(drawn, tmp_path)
    chance.shuffle(drawn)
    trace = in_memory_trace(drawn)

    assert table(trace)["self_device_time_total"].sum() > 0
    assert_frame_equal(table(trace), table(file))
    assert_frame_equal(table(trace, top_level=True), table(file, top_level=True))


def test_work_that_nothing_launched_is_no_operators(tmp_path: Path) -> None:
    drawn = [
        Drawn("cpu_op", "aten::mm", 0, 900, 11),
        Drawn("cuda_runtime", "cudaLaunchKernel", 100, 200, 11),
        Drawn("kernel", "before", 300, 700, 7, device=0),
        Drawn("kernel", "lost", 300, 700, 20, device=0, correlation=5),
        Drawn("cuda_runtime", "cudaDeviceSynchronize", 800, 900, 11, correlation=6),
    ]
    rows = {row["name"]: row for row in table(in_memory_trace(drawn)).iter_rows(named=True)}

    assert rows["aten::mm"]["device_time_total"] == 0
    assert rows["before"]["device_time_total"] == rows["lost"]["device_time_total"] == 400
    assert_frame_equal(table(in_memory_trace(drawn)), table(of_file(drawn, tmp_path)))


def launched(**later: int) -> list[Drawn]:
    """A kernel that a call launched; and what comes after."""
    work = Drawn("kernel", "gemm", 300, later.get("end", 700), 7, device=0, correlation=5)
    calls = [
        Drawn("cuda_runtime", "cudaLaunchKernel", 100, 200, 11, correlation=5),
        Drawn("cuda_runtime", "cudaLaunchKernel", 210, 250, 11, correlation=later.get("next", 6)),
    ]
    return [Drawn("cpu_op", "aten::mm", 0, 900, 11), *calls, work]


def test_calls_of_one_number_have_a_file_read() -> None:
    assert in_memory_trace(launched()) is not None
    assert in_memory_trace(launched(next=5)) is None
    assert in_memory_trace(launched(next=0)) is not None, "0 is no number"


def test_work_that_may_outlast_the_recorder_has_a_file_read() -> None:
    assert in_memory_trace(launched(end=900 + 1_000_000)) is not None
    assert in_memory_trace(launched(end=901 + 1_000_000)) is None
