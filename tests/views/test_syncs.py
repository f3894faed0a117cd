"""What waits of the host cost: drawings, and what real traces hold."""

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.device.device_work import device_work
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.slice_filters import covered_time
from selftime.errors import UsageError
from selftime.intervals import length, subtract
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.syncs import syncs

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return syncs(trace, **options).select(columns).rows()


def test_nothing_waits_for_nothing() -> None:
    assert syncs(Trace()).is_empty()
    assert syncs(sketch("call 1 | kk\ngpu 7 |  kk")).is_empty()


def test_a_wait_costs_what_the_device_lacks_after_it_not_what_it_lasts() -> None:
    starving = sketch("""
        s = cudaStreamSynchronize
        call 1 | k ssss      m
        gpu 7  |  kkkk        mm
    """)
    busy = sketch("""
        s = cudaEventSynchronize
        call 1 | kn ssss     m
        gpu 7  |  kkkknnnnnnnnnmm
    """)
    told = "kind", "wait", "idle", "idle_after", "ended"

    assert rows(starving, *told) == [("stream", 40 * US, 10 * US, 70 * US, "k")]
    assert rows(busy, *told) == [("event", 40 * US, 0, 0, "k")]


def test_nothing_is_known_of_the_cost_of_the_last_wait() -> None:
    trace = sketch("""
        s = cudaDeviceSynchronize
        call 1 | k  sss
        gpu 7  |  kkk
    """)

    assert rows(trace, "kind", "wait", "idle_after") == [("device", 30 * US, None)]


def test_a_wait_starves_until_the_next() -> None:
    """So that what two waits cost together is no more than the device was idle."""
    trace = sketch("""
        s = cudaStreamSynchronize
        e = cudaEventSynchronize
        call 1 | k ss   e      m
        gpu 7  |  kk            m
    """)

    assert rows(trace, "call", "idle_after") == [
        ("cudaEventSynchronize", 70 * US),
        ("cudaStreamSynchronize", 30 * US),
    ]


def test_a_copy_and_the_synchronisation_after_it_are_one_wait() -> None:
    drawing = """
        z = aten::is_nonzero; line = train.py:7 main
        i = aten::item
        l = aten::_local_scalar_dense
        h = Memcpy DtoH (Device -> {memory})
        s = cudaStreamSynchronize
        cpu 1  | zzzzzzzzzzzz
        cpu 1  |  iiiiiiiiiii
        cpu 1  |   lllllllll
        call 1 | k {calls}   m
        gpu 7  |  kkkk         m
        copy 7 |      h
    """
    told = "operator", "inner", "line", "kind", "stream", "call", "wait"
    site = "aten::is_nonzero", "aten::_local_scalar_dense", 7, "copy_to_host", 7
    copied = sketch(drawing.format(memory="Pageable", calls=" hhhh s"))
    pinned = sketch(drawing.format(memory="Pinned", calls=" h ssss"))

    assert rows(copied, *told) == [(*site, "Memcpy DtoH (Device -> Pageable)", 50 * US)]
    assert rows(pinned, *told) == [(*site, "cudaStreamSynchronize", 40 * US)]


def test_waits_of_different_operators_or_with_a_launch_between_are_two() -> None:
    drawing = """
        a = aten::copy_
        b = aten::item
        h = Memcpy DtoH (Device -> Pageable)
        s = cudaStreamSynchronize
        cpu 1  | {operators}
        call 1 | k hhhh {m} ss
        gpu 7  |  kkk     m
        copy 7 |     h
    """
    apart = sketch(drawing.format(operators="aaaaaaaa bbb", m=" "))
    launched = sketch(drawing.format(operators="aaaaaaaaaaaa", m="m"))
    one = sketch(drawing.format(operators="aaaaaaaaaaaa", m=" "))

    assert [kind for (kind,) in rows(apart, "kind")].count("stream") == 1
    assert [kind for (kind,) in rows(launched, "kind")].count("stream") == 1
    assert rows(one, "kind", "wait") == [("copy_to_host", 60 * US)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "copy_to_device"),
        ("Memcpy DtoH (Device -> Pageable)", "copy_to_host"),
        ("Memcpy DtoH (Device -> Host)", "copy_to_host"),
        ("CopyDeviceToHost", "copy_to_host"),
        ("Memcpy DtoH (Device -> Pinned)", None),
        ("Memcpy HtoD (Pinned -> Device)", None),
        ("Memcpy DtoD (Device -> Device)", None),
    ],
)
def test_which_asynchronous_copies_wait(name: str, kind: str | None) -> None:
    """The call lasts until the copy is done; with pinned memory that is by chance."""
    trace = sketch(f"""
        h = {name}
        call 1 | hhhhh
        copy 7 |   hh
    """)

    assert rows(trace, "kind") == ([] if kind is None else [(kind,)])


def test_an_asynchronous_copy_that_went_on_after_its_call_waited_for_nothing() -> None:
    trace = sketch("""
        h = Memcpy DtoH (Device -> Host)
        call 1 | hhhhh
        copy 7 |     hhh
    """)

    assert syncs(trace).is_empty()


def test_the_devices_records_tell_the_stream() -> None:
    trace = sketch("""
        s = cudaStreamSynchronize
        r = Stream Sync; correlation = 3; stream = 9
        call 1 | k sss
        gpu 9  |  kkk
        sync 9 |   rr
    """)

    assert rows(trace, "kind", "stream", "wait") == [("stream", 9, 30 * US)]


def test_waits_are_counted_by_step_and_summed_by_line_or_operator() -> None:
    steps = "".join(f"{letter} = ProfilerStep#{n}\n" for n, letter in enumerate("pqrt"))
    trace = sketch(f"""
        {steps}
        i = aten::item; line = train.py:7 main
        s = cudaStreamSynchronize
        d = cudaDeviceSynchronize
        mark 1 | pppppppqqqqqqqrrrrrrrttttttt
        cpu 1  |   ii     iii    iii    ii
        call 1 | k s    k ss   k ss   k s      dd
        gpu 7  |  kk     kkk    kkk    kk
    """)
    told = "operator", "file", "line", "wait", "count", "count_per_step"

    assert rows(trace, *told, by="line") == [
        ("aten::item", "train.py", 7, 60 * US, 4, 1.0),
        (None, None, None, 20 * US, 1, 0.0),  # after the last step
    ]
    assert rows(trace, "operator", "call", "count", by="operator") == [
        ("aten::item", "cudaStreamSynchronize", 4),
        (None, "cudaDeviceSynchronize", 1),
    ]
    assert sorted(rows(trace, "start", "step"))[-2:] == [(230 * US, 3), (300 * US, None)]
    assert rows(trace, "count", by="line", counted=True) == [(3,)], "the first does not count"


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="`top` is `-1`"):
        syncs(Trace(), top=-1)


LANES = ("cpu 1", "call 1", "call 2", "gpu 7", "gpu 8", "copy 7")
LETTERS = """
    s = cudaStreamSynchronize
    d = cudaDeviceSynchronize
    h = Memcpy DtoH (Device -> Pageable)
    u = Memcpy HtoD (Pageable -> Device)
"""


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    drawn = draw(st.lists(st.tuples(st.sampled_from(LANES), st.text("sdhukm  ", max_size=20))))
    return sketch(LETTERS + "\n".join(f"{lane} | {text}" for lane, text in drawn))


@given(traces())
def test_waits_of_a_thread_cost_no_more_than_the_devices_were_idle(trace: Trace) -> None:
    table, work = syncs(trace), device_work(trace)
    ends = (trace.slices["start"] + trace.slices["duration"]).max()
    every = covered_time(trace.slices.select(start=pl.lit(0), duration=pl.lit(ends)).head(1))
    idle = length(subtract(every, covered_time(work)))
    thread = trace.tracks["thread"].gather(
        trace.slices["track"].gather(table["id"].cast(pl.UInt32))
    )
    for _, own in table.with_columns(thread=thread).group_by("thread"):
        assert own["idle_after"].sum() <= idle
    assert (table["idle"] <= table["wait"]).all() or table.is_empty()
    for by in ("line", "operator"):
        for column in ("wait", "idle_after", "idle"):
            assert syncs(trace, by=by)[column].sum() == table[column].sum()
        assert syncs(trace, by=by)["count"].sum() == table.height


@pytest.mark.traces
def test_no_wait_of_a_real_trace_counts_twice(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        held = host_waits(trace)
        by_thread = held.sort("thread", "start")
        reach = by_thread["end"].shift(1)
        apart = (by_thread["start"] >= reach) | (
            by_thread["thread"] != by_thread["thread"].shift(1)
        )
        assert apart.fill_null(value=True).all(), name
        assert syncs(trace).filter(pl.col("idle") < 0).is_empty(), name


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "waited", "starved"),
    [("a100-2022-diff-test", 320_752, 7_116), ("a100-2022-diff-control", 75_858, 7_201)],
)
def test_long_waits_may_cost_as_little_as_short_ones(
    real: "ReadReal", name: str, waited: int, starved: int
) -> None:
    """43 % and 16 % of the time were spent in 60 copies; both devices then lacked the same."""
    table = syncs(real(name)).filter(pl.col("kind") == "copy_to_host")

    assert table.height == 60
    assert table["wait"].sum() == waited * US
    assert table["idle_after"].sum() == starved * US


@pytest.mark.traces
def test_waits_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(syncs, syncs(real("a100-2022-diff-control"), by="operator"))


@pytest.mark.traces
def test_a_pinned_copy_of_a_real_trace_waits_in_the_call_after_it(
    real: "ReadReal", golden: "Golden"
) -> None:
    golden(syncs, syncs(real("h100-2025-qwen-0.5b")))
