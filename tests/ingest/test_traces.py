"""Real traces of five years and two vendors: every event is there, in its place, linked."""

import gzip
import json
import os
from collections import Counter
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import pytest

from selftime import names
from selftime.ingest.load import load
from selftime.intervals import length, union
from selftime.trace import Trace

pytestmark = pytest.mark.traces

FOLDER: Final = Path(
    os.environ.get("SELFTIME_TRACES") or Path(__file__).parents[3] / "shared" / "traces"
)
PATHS: Final = sorted(FOLDER.glob("*.json.gz"))
COUNT: Final = 29

WITHOUT_LAUNCH: Final = {
    "h100-2025-qwen-0.5b": (509, 1707),
    "mi300-2025-resnet-ddp-recompute": (968, 3653),
    "a100-2022-diff-test": (614, 15632),
}
"""Device slices launched before the window, of all; none in other traces."""

PAIRS: Final = 1716
"""Pairs of forward and backward operators that the flows of these traces tell."""

SIDE_BY_SIDE: Final = ("device", "device annotation", "device sync")

every_trace = pytest.mark.parametrize(
    "path",
    PATHS or [pytest.param(None, marks=pytest.mark.skip(reason=f"no traces in {FOLDER}"))],
    ids=[path.name.partition(".json")[0].removesuffix(".pt.trace") for path in PATHS] or ["none"],
)


def label(path: Path) -> str:
    return path.name.partition(".json")[0].removesuffix(".pt.trace")


@cache
def trace_of(path: Path) -> Trace:
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


@cache
def file_of(path: Path) -> dict[str, Any]:
    """The file as `json` reads it, with times as exact decimals."""
    with gzip.open(path) as file:
        found: dict[str, Any] = json.load(file, parse_float=Decimal)
    return found


def test_all_are_here() -> None:
    if not PATHS:
        pytest.skip(f"no traces in {FOLDER}")
    assert len(PATHS) == COUNT


@every_trace
def test_every_event_is_counted(path: Path) -> None:
    counted = Counter((e["ph"], e.get("cat") or "") for e in file_of(path)["traceEvents"])
    found = trace_of(path).events
    assert {(ph, cat): n for ph, cat, n, _ in found.rows()} == counted


@every_trace
def test_every_complete_event_is_a_slice_or_a_memory_record(path: Path) -> None:
    def category(event: dict[str, Any]) -> str:
        lower = (event.get("cat") or "").lower()
        return names.CURRENT_CATEGORY_BY_OLD_NAME.get(lower, lower)

    memory = {names.ALLOCATION_EVENT, names.OUT_OF_MEMORY_EVENT}
    events = file_of(path)["traceEvents"]
    complete = [e for e in events if e["ph"] == "X" and e["name"] not in memory]
    trace = trace_of(path)
    counted = trace.slices["category"].cast(pl.String).value_counts()
    assert dict(counted.rows()) == Counter(map(category, complete))
    assert trace.memory.height == sum(e["name"] in memory for e in events if e["ph"] in "iX")


@every_trace
def test_every_time_is_exact(path: Path) -> None:
    """Starts and durations are those of the text in decimal arithmetic, clipped ones as written."""
    events = [e for e in file_of(path)["traceEvents"] if e["ph"] == "X" and "dur" in e]
    starts = [int(Decimal(e["ts"]) * 1000) for e in events if e["name"] != names.ALLOCATION_EVENT]
    durations = [
        int(Decimal(e["dur"]) * 1000) for e in events if e["name"] != names.ALLOCATION_EVENT
    ]
    trace = trace_of(path)
    base = int(file_of(path).get("baseTimeNanoseconds") or 0)
    zero = min(starts + [int(Decimal(e["ts"]) * 1000) for e in _memory(path)])
    assert trace.origin in {zero + base, None}
    written = trace.slices.select("id", "start", "duration").update(trace.clipped, on="id")
    found = sorted(written.select("start", "duration").rows())
    assert found == sorted((s - zero, d) for s, d in zip(starts, durations, strict=True))


def _memory(path: Path) -> list[dict[str, Any]]:
    return [e for e in file_of(path)["traceEvents"] if e.get("name") == names.ALLOCATION_EVENT]


@every_trace
def test_times_lie_within_each_other(path: Path) -> None:
    slices = trace_of(path).slices.with_columns(end=pl.col("start") + pl.col("duration"))
    assert slices.filter((pl.col("self") < 0) | (pl.col("self") > pl.col("duration"))).is_empty()
    parents = slices.select("id", "track", "start", "end", "depth")
    inner = slices.join(parents, left_on="parent", right_on="id", suffix="_of_parent")
    assert inner.filter(
        (pl.col("start") < pl.col("start_of_parent"))
        | (pl.col("end") > pl.col("end_of_parent"))
        | (pl.col("track") != pl.col("track_of_parent"))
        | (pl.col("depth") != pl.col("depth_of_parent") + 1)
    ).is_empty()


@every_trace
def test_self_times_of_a_track_sum_to_its_union(path: Path) -> None:
    trace = trace_of(path)
    for (track,), slices in trace.slices.group_by("track"):
        start = slices["start"].to_numpy()
        covered = union(start, start + slices["duration"].to_numpy())
        assert slices["self"].sum() == length(covered), trace.tracks.row(int(str(track)))


@every_trace
def test_clipping_moves_times_by_rounding_only(path: Path) -> None:
    trace = trace_of(path)
    both = trace.clipped.join(trace.slices, on="id", suffix="_now")
    moved = both.select(
        start=(pl.col("start") - pl.col("start_now")).abs(),
        end=(
            pl.col("start") + pl.col("duration") - pl.col("start_now") - pl.col("duration_now")
        ).abs(),
    )
    assert moved.height == trace.clipped.height
    assert moved.filter(pl.max_horizontal("start", "end") > 2000).is_empty()


@every_trace
def test_device_work_is_linked_to_its_launch(path: Path) -> None:
    trace = trace_of(path)
    device = trace.slices.filter(
        pl.col("category").cast(pl.String).is_in(names.DEVICE_WORK_CATEGORIES)
    )
    unlinked = device.filter(pl.col("launch").is_null())
    expected, total = WITHOUT_LAUNCH.get(label(path), (0, device.height))
    assert (unlinked.height, device.height) == (expected, total)
    linked = device.join(trace.slices, left_on="launch", right_on="id", suffix="_of_launch")
    early = linked.filter(pl.col("start") < pl.col("start_of_launch")).height
    reported = trace.repairs.filter(pl.col("fault").str.contains("before its launch"))
    assert early == reported["count"].sum()
    calls = {e["args"]["correlation"] for e in file_of(path)["traceEvents"] if _is_call(e)}
    told = trace.device_args.filter(pl.col("id").is_in(unlinked["id"].implode()))["correlation"]
    assert not calls & set(told.to_list())


def _is_call(event: dict[str, Any]) -> bool:
    category = (event.get("cat") or "").lower()
    is_call = (
        names.CURRENT_CATEGORY_BY_OLD_NAME.get(category, category) in names.RUNTIME_CALL_CATEGORIES
    )
    return is_call and "correlation" in event.get("args", {})


@every_trace
def test_a_call_lies_within_its_operator(path: Path) -> None:
    trace = trace_of(path)
    ends = trace.slices.select("id", "track", "start", end=pl.col("start") + pl.col("duration"))
    calls = trace.call_args.select("id", "operator").join(ends, on="id")
    inner = calls.join(ends, left_on="operator", right_on="id", suffix="_of_operator")
    assert inner.filter(
        (pl.col("start") < pl.col("start_of_operator"))
        | (pl.col("end") > pl.col("end_of_operator"))
        | (pl.col("track") != pl.col("track_of_operator"))
    ).is_empty()


def flows(path: Path) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Forward and backward ends of each flow, as (process, thread, time)."""
    ends: dict[tuple[str, Any], tuple[Any, ...]] = {}
    for e in file_of(path)["traceEvents"]:
        if e["ph"] in "sf" and e.get("cat") == "fwdbwd":
            ends[e["ph"], e["id"]] = (str(e["pid"]), str(e["tid"]), Decimal(e["ts"]) * 1000)
    starts = {key[1] for key in ends if key[0] == "s"}
    return [(ends["s", n], ends["f", n]) for n in starts if ("f", n) in ends]


def agreeing(path: Path) -> int:
    """How many flows end in a backward operator whose forward is where the flow begins."""
    trace = trace_of(path)
    file_origin = (trace.origin or 0) - int(file_of(path).get("baseTimeNanoseconds") or 0)
    written = trace.slices.select("id", "track", "start").update(
        trace.clipped.select("id", "start"), on="id"
    )
    where = written.join(trace.tracks, left_on="track", right_on="id").select(
        "id", "process", "tid", "start"
    )
    at = {row[0]: row[1:] for row in where.rows()}
    links = trace.op_args.filter(pl.col("forward").is_not_null()).select("id", "forward").rows()
    told = {(at[own], at[forward]) for own, forward in links}
    count = 0
    for forward, backward in flows(path):
        ends = [(pid, tid, int(time) - file_origin) for pid, tid, time in (forward, backward)]
        count += (ends[1], ends[0]) in told
    return count


@every_trace
def test_backward_operators_are_joined_as_the_flows_tell(path: Path) -> None:
    assert agreeing(path) == len(flows(path))


def test_there_are_as_many_pairs_as_expected() -> None:
    if not PATHS:
        pytest.skip(f"no traces in {FOLDER}")
    assert sum(len(flows(path)) for path in PATHS) == PAIRS


@every_trace
def test_device_time_is_linked_or_was_launched_before(path: Path) -> None:
    """Nothing is lost between a stream's slices and the operators that they are charged to."""
    trace = trace_of(path)
    device = trace.slices.filter(
        pl.col("category").cast(pl.String).is_in(names.DEVICE_WORK_CATEGORIES)
    )
    args = trace.device_args.join(device, on="id")
    linked = args.filter(pl.col("launch").is_not_null())
    rest = args.filter(pl.col("launch").is_null())
    assert pl.concat([linked, rest])["duration"].sum() == device["duration"].sum()
    if label(path).startswith("b200"):
        assert rest.is_empty()
    unowned = linked.filter(pl.col("operator").is_null())
    calls = trace.call_args.filter(pl.col("id").is_in(unowned["launch"].implode()))
    assert calls["operator"].null_count() == calls.height


@every_trace
def test_nothing_had_to_be_mended(path: Path) -> None:
    repairs = trace_of(path).repairs
    assert repairs.filter(~pl.col("note"))["fault"].to_list() == []


def test_two_reads_are_alike() -> None:
    if not PATHS:
        pytest.skip(f"no traces in {FOLDER}")
    first, second = trace_of(PATHS[-1]), load(PATHS[-1], cache=False)
    assert isinstance(second, Trace)
    assert np.array_equal(first.slices["self"].to_numpy(), second.slices["self"].to_numpy())
