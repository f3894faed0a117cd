"""What holds of the health of any trace, however odd."""

from dataclasses import replace
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.device.device_work import device_work
from selftime.analysis.health.recording_under_check import (
    MAX_HARMLESS_FAULT_SHARE,
    MAX_USABLE_FAULT_SHARE,
)
from selftime.analysis.slice_filters import covered_time
from selftime.intervals import length
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.health import health

NAMES = (
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    "cudaDeviceSynchronize",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "ProfilerStep#1",
    "ProfilerStep#2",
    "nccl:all_reduce",
    "aten::mm",
    "ncclDevKernel_AllReduce",
    "my_all_gather",
)
LANES = ("mark 1", "cpu 1", "cpu 2", "call 1", "call 2", "gpu 7", "gpu 1.8", "copy 9", "note 20")
LETTERS = "abcdef"


@st.composite
def drawings(draw: st.DrawFn) -> str:
    """Any slices on a few lanes; the letters stand for names that mean something."""
    legend = [f"{letter} = {draw(st.sampled_from(NAMES))}" for letter in LETTERS]
    runs = st.text(alphabet=f"{LETTERS}  ", max_size=24)
    lanes = [f"{lane} | {draw(runs)}" for lane in draw(st.lists(st.sampled_from(LANES)))]
    return "\n".join([*legend, *lanes])


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """A drawing in which some ends, links and times are not known or not right."""
    trace = sketch(draw(drawings()))
    height = trace.slices.height
    flags = st.lists(st.booleans(), min_size=height, max_size=height)
    odd = [pl.Series(draw(flags), dtype=pl.Boolean) for _ in range(3)]
    slices = trace.slices.with_columns(
        duration=pl.when(odd[0]).then(None).otherwise("duration"),
        launch=pl.when(odd[1]).then(None).otherwise("launch"),
        start=pl.when(odd[2]).then(0).otherwise("start"),
    )
    metadata: dict[str, Any] = draw(
        st.dictionaries(
            st.sampled_from(["WARNING", "INFO", "with_stack", "selftime"]),
            st.none() | st.integers() | st.text() | st.lists(st.text() | st.integers()),
        )
    )
    return replace(trace, slices=slices, metadata=metadata)


@given(traces())
def test_every_trace_has_a_verdict_and_reasons(trace: Trace) -> None:
    found = health(trace)

    assert found["verdict"].is_in(["good", "degraded", "unusable"]).all()
    assert found["value"].drop_nulls().is_finite().all()
    assert found["text"].str.len_chars().gt(0).all()
    worse = found.filter(pl.col("verdict") != "good")
    assert worse.filter(pl.col("check") != "recording")["affects"].null_count() == 0


@given(st.integers(1, 150), st.data())
def test_the_more_launches_lost_their_work_the_worse(launches: int, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, launches))
    trace = sketch(f"k = cudaLaunchKernel\ncall 1 | {'k ' * launches}\ngpu 7 | {' k' * kept}")
    found = health(trace).filter(pl.col("check") == "launches").row(0, named=True)
    share = 1 - kept / launches

    assert found["value"] == round(share, 4)
    if share > MAX_USABLE_FAULT_SHARE:
        assert found["verdict"] == "unusable"
    elif share > MAX_HARMLESS_FAULT_SHARE:
        assert found["verdict"] == "degraded"


@given(traces())
def test_a_device_is_busy_for_no_longer_than_its_streams_together(trace: Trace) -> None:
    work = device_work(trace)
    streams = sum(length(covered_time(own)) for _, own in work.group_by("track"))
    busy = length(covered_time(work))
    span = int(work["end"].max() - work["start"].min()) if work.height else 0  # type: ignore[operator,arg-type]  # integers

    assert busy <= streams
    assert busy <= span
