"""How a rank comes to each of its collectives, and the jobs that follow from it."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from tests.analysis.graph.drawn import traces

from selftime.analysis.graph.collective_arrivals import (
    COLLECTIVE_ARRIVALS_SCHEMA,
    OWN_WORK_KINDS,
    STEP_TAILS_SCHEMA,
    work_after_collectives,
    work_before_collectives,
)
from selftime.analysis.graph.critical_path import critical_path_segments
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.analysis.steps.step_boundaries import recording_window
from selftime.ingest.load import load
from selftime.testing import sketch
from selftime.testing.simulated_jobs import DelayCause, RankDelay, simulate_job
from selftime.trace import Trace

COLUMN = 10_000
RANKS = 4
LATE = 8_000_000


def spent(found: pl.DataFrame) -> list[dict[str, int]]:
    """Time by kind, in columns of a drawing, where there is any."""
    rows = found.select(OWN_WORK_KINDS).iter_rows(named=True)
    return [{kind: time // COLUMN for kind, time in row.items() if time} for row in rows]


def test_a_trace_without_collectives() -> None:
    for trace in (Trace(), sketch("cpu 1 | aa")):
        found = work_before_collectives(trace)
        assert found.is_empty()
        assert dict(found.schema) == COLLECTIVE_ARRIVALS_SCHEMA
    assert dict(work_after_collectives(Trace()).schema) == STEP_TAILS_SCHEMA
    assert work_after_collectives(sketch("cpu 1 | aa"))["before"].to_list() == [None]


DRAWN = """
    mark 1 | ssssssssssssssssssssssssss
    cpu 1  | aaaa
    call 1 |  kn o      m  p
    gpu 7  |   kkk       mmmmm    qqqq
    gpu 20 |      nnnnooo     ppp
    copy 7 |                     c
    s = ProfilerStep#1
    a = aten::mm
    n = ncclDevKernel_AllReduce_a
    o = ncclDevKernel_AllReduce_b
    p = ncclDevKernel_AllReduce_c
"""


def test_each_comes_from_the_one_before_or_from_the_begin() -> None:
    trace = sketch(DRAWN)
    found = work_before_collectives(trace)
    assert collectives_of_trace(trace)["start"].to_list() == [50_000, 90_000, 170_000]
    assert found["before"].to_list() == [None, 0, None]
    assert found["work"].to_list() == [50_000, 0, 170_000]
    assert spent(found) == [
        {"host": 1, "latency": 1, "compute": 3},
        {},
        {"host": 11, "latency": 1, "compute": 5},
    ]


def test_the_longest_segment_of_a_kind_is_told() -> None:
    trace = sketch(DRAWN)
    found = work_before_collectives(trace)
    names = trace.slices["name"].cast(pl.String)
    assert names[found["compute_slice"][0]] == "k"
    assert names[found["compute_slice"][2]] == "m"
    assert found["copy_slice"].to_list() == [None] * 3
    assert names[found["host_slice"][0]] == "aten::mm"
    assert found["host_slice"][2] is None  # 5 columns of nothing that is recorded


def test_the_end_of_a_step_comes_from_its_last_collective() -> None:
    found = work_after_collectives(sketch(DRAWN))
    assert found["step"].to_list() == [1]
    assert found["before"].to_list() == [None]  # the host waited for nothing
    held = DRAWN.replace("call 1 |  kn o      m  p", "call 1 |  kn o      m  p yyyyyy")
    waited = work_after_collectives(sketch(held + "y = cudaStreamSynchronize\n"))
    assert waited["before"].to_list() == [2]
    assert spent(waited) == [{"copy": 1, "host": 5}]


def left_after(every: pl.DataFrame, found: pl.DataFrame, trace: Trace) -> pl.Series:
    """The begins of the collectives before, or that of the recording."""
    return every["start"].gather(found["before"]).fill_null(recording_window(trace)[0])


@given(traces())
def test_work_is_the_time_since_the_one_before(trace: Trace) -> None:
    found, every = work_before_collectives(trace), collectives_of_trace(trace)
    end = every["end"].gather(found["before"]).fill_null(recording_window(trace)[0])
    start = every["start"]
    assert (found["work"] >= (start - end).clip(0)).all()
    assert (found["work"] <= start - left_after(every, found, trace)).all()
    assert (
        found["work"].to_list()
        == found.select(pl.sum_horizontal(OWN_WORK_KINDS)).to_series().to_list()
    )
    assert (found.select(OWN_WORK_KINDS).to_numpy() >= 0).all()
    rows = found["before"].fill_null(0).to_numpy()
    known = found["before"].is_not_null().to_numpy()
    assert (every["start"].to_numpy()[rows[known]] <= start.to_numpy()[known]).all()


@given(traces())
def test_tails_are_the_ends_of_paths(trace: Trace) -> None:
    """As far back as the step goes, what the path has after the last collective is the tail."""
    found, steps, path = (
        work_after_collectives(trace),
        steps_with_counted_flags(trace),
        critical_path_segments(trace),
    )
    assert found["done"].to_list() == steps["done"].to_list()
    for begin, tail in zip(steps["begin"], found.iter_rows(named=True), strict=True):
        own = path.filter((pl.col("start") >= begin) & (pl.col("end") <= tail["done"]))
        exchanged = own.filter(pl.col("kind") == "communication")
        if tail["before"] is None or not exchanged.height:
            continue
        after = own.filter(pl.col("start") >= exchanged["end"].max())
        sums = dict.fromkeys(OWN_WORK_KINDS, 0)
        sums |= dict(
            after.group_by(pl.col("kind").cast(pl.String))
            .agg((pl.col("end") - pl.col("start")).sum())
            .iter_rows()
        )
        assert sums == {kind: tail[kind] for kind in OWN_WORK_KINDS}


@cache
def job(cause: DelayCause) -> tuple[Trace, ...]:
    """Ranks of a job whose clocks are right and whose rank 2 is late by that cause."""
    ran = simulate_job(ranks=RANKS, steps=5, late=RankDelay(2, LATE, cause), clocks=False)
    found = []
    with TemporaryDirectory() as folder:
        for text in ran.traces.values():
            file = Path(folder) / "trace.json"
            file.write_bytes(text)
            trace = load(file, cache=False)
            assert isinstance(trace, Trace)
            found.append(trace)
    return tuple(found)


def replayed(traces: tuple[Trace, ...], late: dict[int, np.ndarray]) -> np.ndarray:
    """When each collective ends on all ranks, if its arrivals took so much less; in ns."""
    told = [work_before_collectives(trace) for trace in traces]
    every = [collectives_of_trace(trace) for trace in traces]
    origin = [trace.origin or 0 for trace in traces]
    first = min(origin)
    ends: list[int] = []
    for k in range(every[0].height):
        start = []
        for rank, rows in enumerate(told):
            row = rows.row(k, named=True)
            begin = origin[rank] - first + recording_window(traces[rank])[0]
            before = begin if row["before"] is None else ends[row["before"]]
            start.append(before + row["work"] - int(late.get(rank, np.zeros(k + 1, int))[k]))
        transfer = min((own["end"] - own["start"])[k] for own in every)
        ends.append(max(start) + transfer)
    return np.array(ends)


@pytest.mark.parametrize("cause", ["data", "compute", "gc", "host"])
def test_a_simulated_job_ends_when_its_arrivals_say(cause: DelayCause) -> None:
    ranks = job(cause)
    first = min(trace.origin or 0 for trace in ranks)
    ends = collectives_of_trace(ranks[0])["end"].to_numpy() + (ranks[0].origin or 0) - first
    assert replayed(ranks, {}) == pytest.approx(ends, abs=1_000)


@pytest.mark.parametrize("cause", ["data", "compute", "gc", "host"])
def test_the_job_is_as_much_faster_without_what_made_a_rank_late(cause: DelayCause) -> None:
    ranks = job(cause)
    late = np.where(work_before_collectives(ranks[2])[cause].to_numpy() > 0.9 * LATE, LATE, 0)
    saved = replayed(ranks, {})[-1] - replayed(ranks, {2: late})[-1]
    assert saved == pytest.approx(5 * LATE, rel=0.05)


@pytest.mark.traces
def test_the_exchanges_of_a_real_rank(real: object) -> None:
    """Its collectives fill the step: each comes from one before, but for the first."""
    assert callable(real)
    trace = real("mi300-2025-resnet-ddp-recompute")
    found, every = work_before_collectives(trace), collectives_of_trace(trace)
    assert found["before"].null_count() == 1
    end = every["end"].gather(found["before"])
    assert found["work"][1:].to_list() == (every["start"] - end)[1:].to_list()
    assert work_after_collectives(trace)["before"].to_list() == [8, 12, 16]
