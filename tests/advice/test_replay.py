"""The what-if replay: exact without a change, bounded with one."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import Trace, load
from selftime.advice.replay import Change, CutHostTime, RemoveWaits, ScaleDeviceWork, replay_of
from selftime.advice.replay.graph_simulation import recorded_costs, simulate
from selftime.analysis.graph.building import dependency_graph
from selftime.intervals import Intervals, length, union
from selftime.testing import sketch

FOLDER = Path(os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces"))
US = 1_000

HOST_BOUND = """
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    w = cudaStreamSynchronize
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    mark 1 | dddddddd            dddddddd            dddddddd
    call 1 |         k x   www           k x   www           k x   www
    gpu 7  |          kkkkkk              kkkkkk              kkkkkk
"""
DEVICE_BOUND = """
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    mark 1 | ssssttttuuuu
    call 1 | k   m   n
    gpu 7  |  kkkkkkkkkkmmmmmmmmmmnnnnnnnnnn
"""


def named(trace: Trace, text: str) -> pl.DataFrame:
    return trace.slices.filter(pl.col("name").cast(pl.String).str.starts_with(text))


def times(slices: pl.DataFrame) -> Intervals:
    return union(slices["start"].to_numpy(), (slices["start"] + slices["duration"]).to_numpy())


def exact(trace: Trace) -> None:
    """Every call returns and every work ends when it did."""
    graph = dependency_graph(trace)
    outcome = simulate(graph, recorded_costs(graph))
    assert outcome.call_end.tolist() == graph.calls.end.tolist()
    assert outcome.work_end.tolist() == graph.work.end.tolist()


@pytest.mark.parametrize("drawing", [HOST_BOUND, DEVICE_BOUND, "cpu 1 | aa b", ""])
def test_the_unchanged_program_takes_as_long_as_it_took(drawing: str) -> None:
    exact(sketch(drawing))


def test_loading_that_nothing_hides_is_saved_whole() -> None:
    trace = sketch(HOST_BOUND)
    replay = replay_of(trace)
    assert replay.step_time() == 200 * US
    loading = CutHostTime(times(named(trace, "enumerate")))
    assert replay.saving(loading) == 80 * US
    assert replay.saving(CutHostTime(loading.intervals, kept_share=0.75)) == 20 * US


def test_what_the_device_hides_saves_nothing() -> None:
    trace = sketch(DEVICE_BOUND)
    replay = replay_of(trace)
    steps = times(named(trace, "ProfilerStep"))
    assert replay.saving(CutHostTime(steps, kept_share=0.5)) == 0


def test_faster_kernels_save_their_time_where_the_device_is_the_limit() -> None:
    trace = sketch(DEVICE_BOUND)
    kernels = trace.device_args["id"].cast(pl.Int64).to_numpy()
    assert replay_of(trace).saving(ScaleDeviceWork(kernels, kept_share=0.5)) == 50 * US


def test_waits_that_hold_the_host_back_are_saved_as_far_as_the_device_idles() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        w = cudaStreamSynchronize
        mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
        call 1 | kwwwww      kwwwww      kwwwww
        gpu 7  |  kkkkk       kkkkk       kkkkk
    """)
    replay = replay_of(trace)
    waits = RemoveWaits(named(trace, "cudaStream")["id"].cast(pl.Int64).to_numpy())
    saving = replay.saving(waits)
    assert 0 < saving <= length(replay.idle) / len(replay.counted)
    assert saving == pytest.approx(50 * US, abs=10 * US)


def test_several_changes_are_one_replay_and_no_sum() -> None:
    trace = sketch(HOST_BOUND)
    replay = replay_of(trace)
    loading = CutHostTime(times(named(trace, "enumerate")))
    everything = CutHostTime(times(named(trace, "ProfilerStep")))
    together = replay.saving(loading, everything)
    assert together >= replay.saving(loading)
    assert together <= replay.saving(loading) + replay.saving(everything)
    assert together <= replay.step_time()


def test_a_program_without_a_device_is_the_hosts_own() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        mark 1 | ssssssttttttuuuuuu
        cpu 1  | aabb  aabb  aabb
    """)
    replay = replay_of(trace)
    assert replay.step_time() == 60 * US
    assert replay.saving(CutHostTime(times(named(trace, "a")))) == 20 * US


def test_work_needs_work_of_another_stream_that_ended_just_before() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        mark 1 | ssssssssssssssssssss
        call 1 | km
        gpu 7  |  kkkkkkkkkk
        gpu 8  |            mmmm
    """)
    exact(trace)
    kernel = named(trace, "k").filter(pl.col("category").cast(pl.String) == "kernel")["id"]
    replay = replay_of(trace)
    graph = dependency_graph(trace)
    assert graph.stream_waits.work.size == 1
    outcome = replay.program_time(ScaleDeviceWork(kernel.cast(pl.Int64).to_numpy(), kept_share=0.5))
    assert outcome == 200 * US  # the host's step is longer


lanes = st.text("kmn ", max_size=30)


@st.composite
def programs(draw: st.DrawFn) -> Trace:
    """Random launches, waits and work on two streams, with steps around."""
    call = draw(st.lists(st.sampled_from(["k", "m", "w ", " ", "  "]), max_size=15))
    text = "".join(call)
    first, second = draw(lanes), draw(lanes)
    width = max(len(text), len(first), len(second)) + 3
    third = width // 3 + 1
    steps = "s" * third + "t" * third + "u" * third
    return sketch(f"""
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        w = cudaDeviceSynchronize
        mark 1 | {steps}
        call 1 | {text}
        gpu 7  |  {first.replace("n", "k")}
        gpu 8  |  {second.replace("n", "m")}
    """)


@given(programs())
def test_identity_is_exact(trace: Trace) -> None:
    exact(trace)


@given(programs(), st.integers(0, 40), st.integers(0, 40), st.sampled_from([0.0, 0.5, 0.9]))
def test_removing_host_time_slows_nothing_and_saves_at_most_the_idle_time(
    trace: Trace, begin: int, width: int, keep: float
) -> None:
    replay = replay_of(trace)
    where = union([begin * 10 * US], [(begin + width) * 10 * US])
    assert replay.program_time(CutHostTime(where, keep)) <= replay.program_time()
    saving = replay.saving(CutHostTime(where, keep))
    if replay.graph.work.id.size:
        assert saving <= length(replay.idle) / max(len(replay.counted), 1)


@given(programs(), st.data())
def test_removing_work_and_waits_slows_nothing(trace: Trace, data: st.DataObject) -> None:
    replay = replay_of(trace)
    work = replay.graph.work.id
    chosen = np.array(data.draw(st.lists(st.sampled_from(work.tolist()))) if work.size else [])
    waits = replay.graph.calls.id
    changes: list[Change] = [ScaleDeviceWork(chosen.astype(np.int64), 0.5), RemoveWaits(waits)]
    for change in changes:
        assert replay.program_time(change) <= replay.program_time()
    assert replay.program_time(*changes) <= min(map(replay.program_time, changes))


@pytest.mark.traces
def test_identity_on_every_real_trace() -> None:
    files = sorted(FOLDER.glob("*.json.gz"))
    if not files:
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
    for path in files:
        trace = load(path)
        assert isinstance(trace, Trace)
        exact(trace)


@pytest.mark.traces
def test_the_repaired_twin_is_predicted() -> None:
    """Data loading without workers, and a recording of the same program with four."""
    before = FOLDER / "v100-2021-resnet50-workers0.pt.trace.json.gz"
    after = FOLDER / "v100-2021-resnet50-workers4.pt.trace.json.gz"
    if not before.exists() or not after.exists():
        pytest.skip(f"the traces are not in {FOLDER}; set SELFTIME_TRACES")
    slow, fast = load(before), load(after)
    assert isinstance(slow, Trace)
    assert isinstance(fast, Trace)
    loading = CutHostTime(times(named(slow, "enumerate(DataLoader)")))
    predicted = replay_of(slow).step_time(loading)
    measured = fast.view("steps").filter("counted")["device_time"].median()
    assert isinstance(measured, float)
    assert predicted == pytest.approx(measured, rel=0.08)
