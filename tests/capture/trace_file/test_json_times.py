"""The times in the JSON that torch writes are replaced, and nothing else."""

import gc
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from selftime.capture.profiler.profiler_options import profiler_config_with_all_events
from selftime.capture.trace_file.event_columns import EventColumns, event_columns
from selftime.capture.trace_file.json_times import replace_times
from selftime.capture.trace_file.time_mapping import Collections, TimeMapping, time_mapping

MS = 1_000_000


def recording(folder: Path) -> tuple[Path, EventColumns]:
    """Two steps with frames, a garbage collection and memory events, as torch writes them."""
    options: dict[str, Any] = {"with_stack": True, "profile_memory": True, "record_shapes": True}
    config = profiler_config_with_all_events(frames=True)
    values = torch.randn(8, 8, requires_grad=True)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], experimental_config=config, **options
    ) as prof:
        for number in (1, 2):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                (values @ values).sum().backward()  # type: ignore[no-untyped-call]  # torch
                gc.collect()
    file = folder / "trace.json"
    prof.export_chrome_trace(str(file))
    assert prof.profiler is not None
    return file, event_columns(prof.profiler.kineto_results.events())


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, EventColumns]:
    gc.disable()  # two collections are asked for, and none comes by itself
    try:
        return recording(tmp_path)
    finally:
        gc.enable()


def moved(events: EventColumns, *, by: int, times: int) -> EventColumns:
    """The same events, so many times as long and so much later."""
    first = events.step_spans_ns[1][0]

    def move(instants: Any) -> Any:
        return first + by + times * (instants - first)

    spans = {step: (move(start), move(end)) for step, (start, end) in events.step_spans_ns.items()}
    return EventColumns(
        events.name, events.device, events.thread, move(events.start_ns), move(events.end_ns),
        events.correlation, spans, {},
    )  # fmt: skip


def rows(text: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return [row for row in found if row["ph"] != "M"]


def nanoseconds(value: float) -> int:
    return round(value * 1000)


@pytest.mark.parametrize("chunk", [997, 1 << 20])
def test_all_times_are_mapped_in_chunks_of_any_size(
    recorded: tuple[Path, EventColumns], chunk: int
) -> None:
    file, events = recorded
    text = file.read_bytes()
    mapping = time_mapping(events, moved(events, by=5 * MS, times=3), [(1, 1), (2, 2)])
    pieces = [text[at : at + chunk] for at in range(0, len(text), chunk)]
    before, after = rows(text), rows(b"".join(replace_times(pieces, mapping)))

    start, end = events.step_spans_ns[1][0], events.step_spans_ns[2][1]
    base = json.loads(text)["baseTimeNanoseconds"]
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        began = nanoseconds(old["ts"]) + base
        if start <= began <= end:
            wanted = start + 5 * MS + 3 * (began - start)
            assert abs(nanoseconds(new["ts"]) + base - wanted) <= 1
        kept = {key: value for key, value in old.items() if key not in {"ts", "dur"}}
        assert kept == {key: value for key, value in new.items() if key not in {"ts", "dur"}}
        assert ("dur" in old) == ("dur" in new)
    longer = [
        nanoseconds(new["dur"]) == 3 * nanoseconds(old["dur"])
        for old, new in zip(before, after, strict=True)
        if old.get("cat") == "cpu_op"
    ]
    assert longer
    assert all(longer)


@pytest.mark.parametrize("chunk", [40, 1 << 20])
def test_garbage_collections_are_those_of_the_other_recording(
    recorded: tuple[Path, EventColumns], chunk: int
) -> None:
    file, events = recorded
    thread = threading.get_native_id()
    assert len(events.collections_ns[thread]) == 2
    instants = np.array(events.collections_ns[thread], np.int64)
    end = events.step_spans_ns[1][1]
    other = Collections(np.array([end - 1000], np.int64), np.array([end - 400], np.int64))
    both = {thread: (Collections(instants[:, 0], instants[:, 1]), other)}
    mapping = time_mapping(events, events, [(1, 1), (2, 2)], collections=both)
    text = file.read_bytes()
    pieces = [text[at : at + chunk] for at in range(0, len(text), chunk)]
    every = rows(b"".join(replace_times(pieces, mapping)))
    found = [row for row in every if row["name"] == "Python GC"]
    assert [(row["pid"], row["tid"]) for row in found] == [(os.getpid(), thread)]
    assert [nanoseconds(row["dur"]) for row in found] == [600]


def test_an_event_of_no_thread_is_mapped_with_the_steps(
    recorded: tuple[Path, EventColumns],
) -> None:
    file, events = recorded
    mapping = time_mapping(events, moved(events, by=7 * MS, times=1), [(1, 1), (2, 2)])
    assert isinstance(mapping, TimeMapping)
    text = b"".join(replace_times([file.read_bytes()], mapping))
    spans = [
        next(row for row in rows(one) if row["name"] == "Record Window End")
        for one in (file.read_bytes(), text)
    ]
    assert nanoseconds(spans[1]["ts"]) - nanoseconds(spans[0]["ts"]) == 7 * MS
