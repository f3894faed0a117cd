"""What ran at the same time: drawings, and what holds of every trace."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.overlap import overlap
from selftime.views.steps import steps

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
PARTS = ("compute", "exposed_communication", "exposed_copies", "idle")
"""What adds up to the window."""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return overlap(trace, **options).select(columns).rows()


def us(*times: int | None) -> tuple[int | None, ...]:
    return tuple(None if time is None else time * US for time in times)


def test_nothing_recorded() -> None:
    assert overlap(Trace()).is_empty()


DEVICE = """
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    gpu 7  | kkkkk   kk
    gpu 8  |    nnnnnn
    copy 9 |  c     ccccc  cc
"""


def test_a_moment_counts_to_compute_then_communication_then_copies() -> None:
    trace = sketch(DEVICE)

    assert rows(trace, "window", *PARTS) == [us(160, 70, 30, 40, 20)]
    whole = "communication", "copies", "compute_alone", "overlapped", "concurrent"
    assert rows(trace, *whole) == [us(60, 80, 20, 60, 60)]
    assert rows(trace, "hidden_share", "streams") == [(0.5, 3)]


def test_pairs_of_streams_that_worked_at_the_same_time() -> None:
    assert rows(sketch(DEVICE), "stream", "other", "concurrent", by="streams") == [
        (7, 8, 30 * US),
        (7, 9, 30 * US),
        (8, 9, 20 * US),
    ]


def test_kernels_that_overlap_on_one_stream_are_not_concurrent_streams() -> None:
    trace = sketch("gpu 7 | kkkk\ngpu 7 |   mmmm")

    assert rows(trace, "compute", "concurrent", "streams") == [(60 * US, 0, 1)]


def test_every_device_has_a_row_for_every_step() -> None:
    trace = sketch("""
        p = ProfilerStep#4
        q = ProfilerStep#5
        n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
        mark 1  | ppppppqqqqqq
        call 1  | k    nm    o
        gpu 7   |  kkkk  mmm  ooo
        gpu 1.7 |      nnnn
    """)
    told = "step", "device", "window", "compute", "communication", "idle"

    assert rows(trace, *told, by="step") == [
        (4, 0, *us(90, 60, 0, 30)),
        (4, 1, *us(90, 0, 40, 50)),
        (5, 0, *us(60, 40, 0, 20)),
        (5, 1, *us(60, 0, 0, 60)),
    ]


def test_without_a_device_the_host_computes_and_communicates() -> None:
    trace = sketch("""
        g = gloo:all_reduce
        c = c10d::allreduce_
        cpu 1  | aaaa cc bbb
        mark 2 |       ggggg
    """)

    assert rows(trace, "device", "window", *PARTS) == [(None, *us(110, 70, 30, 0, 10))]
    assert rows(trace, "hidden_share", "concurrent", "streams") == [(0.5, None, None)]


KINDS = {"gpu 7": "abn  ", "gpu 8": "abn  ", "copy 9": "c  ", "fill 9": "f  ", "gpu 1.7": "an "}


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Overlapping work of several kinds on several streams and devices."""
    lanes = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=8))
    drawn = [f"{lane} | {draw(st.text(KINDS[lane], max_size=24))}" for lane in lanes]
    return sketch("n = ncclDevKernel_AllReduce_Sum_f32_RING_LL\n" + "\n".join(drawn))


def columns_of(slices: pl.DataFrame, columns: int) -> np.ndarray:
    """In which columns of the drawing any of the slices lies."""
    held = np.zeros(columns, bool)
    for start, duration in slices.select("start", "duration").iter_rows():
        held[start // 10_000 : (start + duration) // 10_000] = True
    return held


@given(traces())
def test_overlap_is_what_counting_columns_finds(trace: Trace) -> None:
    work = trace.slices.join(trace.device_args.select("id", "device", "stream"), on="id")
    count = int((work["start"] + work["duration"]).max() or 0) // 10_000  # type: ignore[arg-type]  # integers
    name, category = pl.col("name").cast(pl.String), pl.col("category").cast(pl.String)
    told = overlap(trace)
    assert told.height == work["device"].n_unique()
    for row in told.iter_rows(named=True):
        own = work.filter(pl.col("device") == row["device"])
        copies = columns_of(own.filter(category != "kernel"), count)
        communication = columns_of(own.filter(name.str.starts_with("nccl")), count)
        compute = columns_of(
            own.filter((category == "kernel") & ~name.str.starts_with("nccl")), count
        )
        streams = sum(columns_of(each, count).astype(int) for _, each in own.group_by("stream"))
        before = int(work["start"].min()) // 10_000  # type: ignore[arg-type]  # an integer
        kinds = compute.astype(int) + communication + copies
        assert {name: row[name] // 10_000 for name in (*PARTS, "overlapped", "concurrent")} == {
            "compute": compute.sum(),
            "exposed_communication": (communication & ~compute).sum(),
            "exposed_copies": (copies & ~communication & ~compute).sum(),
            "idle": (kinds == 0).sum() - before,
            "overlapped": (kinds > 1).sum(),
            "concurrent": (np.asarray(streams) > 1).sum(),
        }


@pytest.mark.traces
def test_parts_add_up_to_the_window_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        for by in ("device", "step"):
            table = overlap(real(name), by=by)
            assert (
                table.select(pl.sum_horizontal(PARTS)).to_series().to_list()
                == table["window"].to_list()
            ), name
            assert table.filter(pl.min_horizontal(*PARTS, "overlapped") < 0).is_empty(), name
            hidden = pl.col("communication") - pl.col("exposed_communication")
            assert table.filter(hidden > pl.col("compute")).is_empty(), name


@pytest.mark.traces
def test_communication_is_that_of_the_steps(real: "ReadReal") -> None:
    trace = real("a100-2024-nccl-2ranks")
    table = overlap(trace, by="step")

    assert table["exposed_communication"].sum() == 39_559_468
    assert overlap(trace)["communication"].to_list() == [46_876_493], "of 667 ms"
    told = steps(trace).select(pl.sum_horizontal("kernel", "memcpy", "communication", "memset"))
    busy = table["window"] - table["idle"]
    assert busy.to_list() == told.to_series().to_list()


@pytest.mark.traces
def test_overlap_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(overlap, overlap(real("mi300-2025-resnet-ddp-recompute"), by="step"))
