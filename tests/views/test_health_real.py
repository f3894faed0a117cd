"""Health of real traces as they are, and after losses that occur in practice."""

import gzip
import json
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from selftime import load
from selftime.trace import Trace
from selftime.views.health import health

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

Event = dict[str, Any]
Change = Callable[[Event], Event | None]
Changed = Callable[[str, Change], Trace]

pytestmark = pytest.mark.traces

WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
ORDER = ("good", "degraded", "unusable")

WHY = {
    "file": "it was cut to a few milliseconds, and half of its Python frames lost their callers",
    "steps": "fewer than three steps count, or none is marked",
    "operators": "recorded without the host's operators",
    "device": "ranks exchange by NCCL, and no device activity was recorded",
    "past_end": "ProfilerStep#1 ends 13 s after the recorder stopped",
}
"""Why a check is less than good in the traces below; each was read and judged by hand."""
LESS_THAN_GOOD = {
    "a100-2022-sampled-rank0": ["steps"],
    "a100-2022-sampled-rank1": ["steps"],
    "a100-2023-alexnet": ["steps"],
    "a100-2023-event-sync": ["steps"],
    "a100-2023-event-sync-multi-stream": ["steps"],
    "a100-2023-simple-add": ["steps"],
    "a100-2024-nccl-2ranks": ["steps"],
    "a100-2024-triton": ["past_end", "steps"],
    "b200-2025-vllm-eager": ["steps"],
    "cpu-2024-gloo-rank34": ["steps"],
    "gpu-2022-inference-rank1": ["operators", "steps"],
    "gpu-2022-no-rank": ["device", "steps"],
    "h100-2025-bert-small": ["steps"],
    "h100-2025-qwen-0.5b": ["steps"],
    "h100-2025-vit": ["steps"],
    "mi210-gpu-only": ["operators", "steps"],
    "mi250-2024-toy": ["steps"],
    "mi300-2025-bert-small": ["steps"],
    "mi300-2025-resnet-ddp-recompute": ["steps"],
    "mi300-2026-sglang-decode-graph-capture": ["steps"],
    "mi300-2026-sglang-decode-graph-replay": ["steps"],
    "mi300-2026-vllm-decode-graph-replay": ["steps"],
    "mi300-normalization-layers": ["steps"],
    "mi300-torch-compile-triton": ["steps"],
}
"""Traces that are not good in all; the others have several marked steps and lost nothing."""


def doubts(trace: Trace) -> dict[str, str]:
    """Checks that are less than good, and their verdicts."""
    found = health(trace).filter(pl.col("verdict") != "good")
    return dict(found.select("check", "verdict").rows())


def row(trace: Trace, check: str) -> dict[str, Any]:
    return health(trace).filter(pl.col("check") == check).row(0, named=True)


@pytest.fixture
def changed(tmp_path: Path, real_files: Callable[[str], Path]) -> Changed:
    """A real trace with every device event changed or, where None comes back, left out."""
    number = count()

    @cache
    def read(name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(gzip.decompress(real_files(name).read_bytes()))
        return document

    def change(name: str, how: Change) -> Trace:
        document = read(name)
        events = document["traceEvents"]
        kept = [how(event) if event.get("cat") in WORK else event for event in events]
        path = tmp_path / f"{next(number)}.json"
        text = json.dumps({**document, "traceEvents": [e for e in kept if e is not None]})
        path.write_text(text, encoding="utf-8")
        trace = load(path, cache=False)
        assert isinstance(trace, Trace)
        return trace

    return change


def unless(lost: Callable[[Event], bool]) -> Change:
    return lambda event: None if lost(event) else event


def test_only_what_was_judged_by_hand_is_less_than_good(
    real: "ReadReal", real_names: list[str]
) -> None:
    for name in real_names:
        found = doubts(real(name))
        assert sorted(found) == LESS_THAN_GOOD.get(name, []), name
        assert set(found) <= WHY.keys()
        assert "unusable" not in found.values()


def test_health_of_a_trace_with_graph_replays(real: "ReadReal", golden: "Golden") -> None:
    golden(health, health(real("a100-2022-diff-test")))


@pytest.mark.parametrize(
    ("percent", "verdict"),
    [
        (0, "good"),
        (1, "good"),
        (2, "degraded"),
        (10, "degraded"),
        (50, "unusable"),
        (100, "unusable"),
    ],
)
def test_lost_device_work_is_worse_the_more_is_lost(
    changed: Changed, percent: int, verdict: str
) -> None:
    seen = count(1)

    def every_so_many(_: Event) -> bool:
        number = next(seen)
        return (number * percent) // 100 > ((number - 1) * percent) // 100

    found = row(changed("h100-2025-vit", unless(every_so_many)), "launches")

    assert found["verdict"] == verdict
    assert found["value"] == pytest.approx(percent / 100, abs=0.01)


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("share", "verdict"), [(0.02, "degraded"), (0.3, "unusable")])
def test_a_lost_end_is_told(real: "ReadReal", changed: Changed, share: float, verdict: str) -> None:
    name = "v100-2024-resnet-nanoseconds"
    order = real(name).slices.filter(pl.col("launch").is_not_null())["start"].sort()
    origin = min_time(changed, name)
    last = origin + order[int((1 - share) * order.len())] / 1000
    found = doubts(changed(name, unless(lambda event: event["ts"] >= last)))

    assert found["end"] == verdict
    assert found["launches"] == verdict


def min_time(changed: Changed, name: str) -> float:
    """The time of the first slice as the file has it, in us."""
    first: list[float] = []

    def note(event: Event) -> Event:
        first.append(event["ts"])
        return event

    trace = changed(name, note)
    starts = trace.slices.filter(pl.col("category").cast(pl.String).is_in(list(WORK)))["start"]
    return min(first) - float(starts.min()) / 1000  # type: ignore[arg-type]  # integers


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("stream", "operator"), [(15, "nccl:all_to_all"), (14, "fbgemm::permute_sparse_features")]
)
def test_a_lost_stream_is_told_by_the_operators_that_launch_on_it(
    changed: Changed, stream: int, operator: str
) -> None:
    lost = changed(
        "a100-2022-diff-test", unless(lambda event: event["args"].get("stream") == stream)
    )

    assert doubts(lost)["launches"] == "degraded"
    assert f"`{operator}`" in row(lost, "streams")["text"]


def test_one_replay_recorded_of_many_is_unusable(real: "ReadReal", changed: Changed) -> None:
    name = "a100-2022-diff-test"
    trace = real(name)
    graphs = trace.slices.filter(pl.col("name").cast(pl.String) == "cudaGraphLaunch")["id"]
    calls = trace.call_args.filter(pl.col("id").is_in(graphs.implode()))["correlation"].sort()
    late = set(calls[1:].to_list())
    lost = changed(name, unless(lambda event: event["args"].get("correlation") in late))

    assert doubts(lost)["replays"] == "unusable"
    assert row(lost, "replays")["text"].startswith("of 12 graph replays 11 lack kernels")


@pytest.mark.sweep
def test_work_lost_within_replays_is_told(real: "ReadReal", changed: Changed) -> None:
    name = "a100-2022-diff-test"
    trace = real(name)
    graphs = trace.slices.filter(pl.col("name").cast(pl.String) == "cudaGraphLaunch")["id"]
    calls = trace.call_args.filter(pl.col("id").is_in(graphs.implode()))["correlation"]
    within, chance = set(calls.to_list()), np.random.default_rng(1)
    lost = changed(
        name,
        unless(lambda e: e["args"].get("correlation") in within and chance.random() < 0.1),
    )

    assert doubts(lost)["replays"] == "degraded"
    assert row(lost, "replays")["value"] == pytest.approx(0.1, abs=0.04)


def test_impossible_durations_are_listed(real: "ReadReal", changed: Changed) -> None:
    name = "v100-2024-resnet-nanoseconds"
    chosen = set(np.random.default_rng(3).choice(6095, 7, replace=False).tolist())
    number = count()

    def stretch(event: Event) -> Event:
        return {**event, "dur": event["dur"] * 10_000} if next(number) in chosen else event

    stretched = changed(name, stretch)
    found = row(stretched, "durations")
    before = real(name).slices["duration"].max()
    long = stretched.slices.filter(pl.col("duration") > before, pl.col("launch").is_not_null())[
        "id"
    ]

    assert found["verdict"] == "degraded"
    assert found["value"] == len(chosen)
    assert set(long.to_list()) <= set(map(int, found["slices"].split()))
    assert "same_stream" not in doubts(stretched)


def test_a_renamed_category_is_told(changed: Changed) -> None:
    renamed = changed("h100-2025-vit", lambda event: {**event, "cat": "gpu_kernel_v2"})
    found = row(renamed, "categories")

    assert found["verdict"] == "degraded"
    assert "`gpu_kernel_v2`" in found["text"]
    assert doubts(renamed)["launches"] == "unusable"


def test_clocks_that_differ_by_seconds_are_told(changed: Changed) -> None:
    early = changed("h100-2025-vit", lambda event: {**event, "ts": event["ts"] - 2_000_000})
    late = changed("h100-2025-vit", lambda event: {**event, "ts": event["ts"] + 5_000})

    assert doubts(early)["clocks"] == "unusable"
    assert doubts(late)["clocks"] == "unusable"
