"""Parts of real traces: their answers are those of the whole, and Perfetto shows every event."""

from pathlib import Path
from typing import Final

import msgspec
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.perfetto import ask
from typer.testing import CliRunner

from selftime.cli import app
from selftime.ingest.load import load
from selftime.trace import Trace

RUN: Final = CliRunner()

PARTS: Final = {
    "a100-2024-nccl-2ranks": ("5", 5, 5),
    "v100-2024-resnet-nanoseconds": ("103:104", 103, 104),
    "mi300-2025-resnet-ddp-recompute": ("16", 16, 16),
    "h100-2025-vit": (":", 6, 6),
}
"""Traces, their steps to cut, and the first and last of these."""


def read(path: Path) -> Trace:
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


def cut(path: Path, part: Path, *words: str) -> None:
    done = RUN.invoke(app, ["cut", str(path), "-o", str(part), *words])
    assert done.exit_code == 0, done.output


def totals(slices: pl.DataFrame) -> pl.DataFrame:
    """By name and category: how many, how long, how much of it in none within."""
    figures = [pl.len(), pl.col("duration").sum(), pl.col("self").sum()]
    key = [pl.col("category").cast(pl.String), pl.col("name").cast(pl.String)]
    return slices.group_by(key).agg(figures).sort("category", "name")


def of_kinds(trace: Trace, *kinds: str) -> pl.DataFrame:
    kind = trace.tracks["kind"].cast(pl.String).gather(trace.slices["track"])
    return trace.slices.filter(kind.is_in(kinds))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.sweep(1)
def test_answers_on_steps_are_those_of_the_whole(
    name: str, real_traces: Path, tmp_path: Path
) -> None:
    words, first, last = PARTS[name]
    path, part = real_traces / f"{name}.json.gz", tmp_path / "part.json"
    cut(path, part, "--steps", words)
    whole, left = read(path), read(part)
    steps = whole.view("steps").filter(pl.col("step").is_between(first, last))
    begin, end = steps["start"][0], (steps["start"] + steps["host_time"])[-1]
    within = pl.col("start").is_between(begin, end, closed="left")
    marks = ("user_annotation",)
    work = of_kinds(whole, "host").filter(within & ~pl.col("category").cast(pl.String).is_in(marks))
    found = of_kinds(left, "host").filter(~pl.col("category").cast(pl.String).is_in(marks))
    assert_frame_equal(totals(found), totals(work))
    launched = of_kinds(whole, "device").filter(pl.col("launch").is_in(work["id"].implode()))
    linked = of_kinds(left, "device").filter(pl.col("launch").is_not_null())
    assert_frame_equal(totals(linked), totals(launched))
    same = ("step", "host_time", "device_slices", "lag", "kernel", "memcpy", "memset")
    assert_frame_equal(left.view("steps").select(same), steps.select(same))


CROSSING: Final = ("b200-2025-vllm-eager", "mi300-2026-sglang-decode-graph-replay")
"""Traces with kernels that overlap on one stream, and annotations that cross frames."""


@pytest.mark.parametrize("name", CROSSING)
@pytest.mark.sweep(1)
def test_perfetto_shows_every_event_of_a_part(name: str, real_traces: Path, tmp_path: Path) -> None:
    path, part = real_traces / f"{name}.json.gz", tmp_path / "part.json"
    cut(path, part)
    written = msgspec.json.decode(part.read_bytes())["traceEvents"]
    slices = sum(event["ph"] == "X" for event in written)
    assert slices == read(path).slices.height
    shown = "select count(*) from slice"
    lost = "select coalesce(sum(value), 0) from stats where severity in ('error', 'data_loss')"
    assert ask(part, shown, lost) == [[[slices]], [[0]]]
