from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.steps import steps

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

PARTS = ["kernel", "memcpy", "memset", "communication", "runtime", "data_loading", "cpu", "other"]
US = 1_000
MS = 1_000_000


def test_nothing_recorded_has_no_steps() -> None:
    assert steps(Trace()).is_empty()


def test_a_moment_counts_to_the_first_category_that_holds_of_it() -> None:
    trace = sketch("""
        s = ProfilerStep#3
        t = ProfilerStep#4
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        n = ncclDevKernel_AllReduce_Sum_f32_RING_LL

        mark 1 | sssssssssstttttttttt
        mark 1 | dd        dd
        cpu 1  |   aaaa     aaaaaa
        call 1 |    k        k m n
        gpu 7  |      kkk     kkk
        copy 8 |                mmm
        gpu 9  |                   nnnnn
    """)
    table = steps(trace)

    assert table.select("step", "time", *PARTS).rows() == [
        #  step  time        kernel   copy     fill communic. call     loading  cpu      other
        (3, 100 * US, 30 * US, 0, 0, 0, 10 * US, 20 * US, 20 * US, 20 * US),
        (4, 130 * US, 30 * US, 20 * US, 0, 50 * US, 10 * US, 20 * US, 0, 0),
    ]
    assert table.select("device_time", "lag", "device_slices", "loading").rows() == [
        (None, -20 * US, 1, 20 * US),  # nothing before it to measure from
        (150 * US, 30 * US, 3, 20 * US),
    ]


def test_what_was_never_recorded_is_unknown_and_not_zero() -> None:
    table = steps(sketch("s = ProfilerStep#0\nmark 1 | ssss\ncpu 1  |  aa"))

    assert table.select("data_loading", "loading", "device_time", "lag").row(0) == (None,) * 4
    assert table.select("cpu", "other").row(0) == (20 * US, 20 * US)


def test_without_the_profilers_steps_the_optimizer_tells_them() -> None:
    table = steps(sketch("o = Optimizer.step#SGD.step\nmark 1 |   oo   oo\ncpu 1  | aa   aa"))

    assert table.select("source", "step", "start", "host_time", "note").rows() == [
        ("optimizer", 0, 0, 40 * US, "partial: it began before"),
        ("optimizer", 1, 40 * US, 50 * US, None),
    ]


def test_without_either_the_recording_is_one_step() -> None:
    table = steps(sketch("cpu 1  |  aa  bb"))

    assert table.select("source", "start", "host_time").rows() == [("window", 10 * US, 60 * US)]


def test_steps_on_a_device_are_its_copies_of_the_hosts() -> None:
    trace = sketch("s = ProfilerStep#0\ngpu 7 | ssss\ncpu 1 | a")

    assert steps(trace)["source"].to_list() == ["window"]


def test_the_first_the_cut_off_and_the_outliers_are_told_and_not_counted() -> None:
    marks = "".join(
        letter * width for letter, width in zip("abcdefgh", (9, 5, 5, 5, 5, 9, 5, 5), strict=True)
    )
    names = "".join(f"{letter} = ProfilerStep#{n}\n" for n, letter in enumerate("abcdefgh"))
    table = steps(sketch(f"{names}mark 1 | {marks}"))

    told = dict(table.filter(~pl.col("counted")).select("step", "note").rows())
    assert told == {
        0: "the first: the profiler had just begun",
        5: "an outlier: far longer than the others",
    }
    longer = table.filter(pl.col("excess").is_not_null())
    assert longer.select("step", "excess", "longer_in").rows() == [(5, 40 * US, "other")]


def test_a_last_step_whose_device_work_is_missing_was_cut_off() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        t = ProfilerStep#1
        mark 1 | ssssssssstttttttt
        call 1 | kkkk     k
        gpu 7  |  k k kk   k
    """)
    cut = sketch("""
        s = ProfilerStep#0
        t = ProfilerStep#1
        mark 1 | sssssssssttttttttt
        call 1 | k l m n  o p
        gpu 7  |  k l m n  o p
    """)

    assert steps(trace)["counted"].to_list() == [True, True]
    assert steps(cut)["note"].to_list() == [None, "partial: its device work was cut off"]


def test_a_recording_that_ended_early_ended_within_its_last_step() -> None:
    drawing = "s = ProfilerStep#0\nt = ProfilerStep#1\nmark 1 | sssstttt"
    table = steps(sketch(drawing, metadata={"selftime": {"partial": "ended by KeyboardInterrupt"}}))

    assert table["note"].to_list() == [None, "partial: the recording ended within it"]


@pytest.mark.traces
def test_categories_add_up_to_the_time_in_every_trace(
    real: "ReadReal", real_names: list[str]
) -> None:
    assert len(real_names) > 20
    for name in real_names:
        table = steps(real(name))
        total = table.select(pl.sum_horizontal(pl.col(PARTS).fill_null(0))).to_series()
        assert total.to_list() == table["time"].to_list(), name
        assert table.filter(pl.min_horizontal(PARTS) < 0).is_empty(), name


@pytest.mark.traces
def test_workers_hide_the_loading_of_data(real: "ReadReal") -> None:
    none = steps(real("v100-2021-resnet50-workers0.pt.trace")).filter("counted")
    four = steps(real("v100-2021-resnet50-workers4.pt.trace")).filter("counted")

    exposed = [time // US for time in none["data_loading"]]
    assert exposed == [57_669, 61_257, 56_453, 62_690, 48_185]
    assert [time // US for time in four["data_loading"]] == [0, 6, 0, 1_400]
    assert none["data_loading"].median() == 57_669 * US
    assert (none["loading"] > none["data_loading"])[:-1].all(), "kernels ran when loading began"


@pytest.mark.traces
def test_the_device_tells_a_steps_time_where_the_host_runs_ahead(real: "ReadReal") -> None:
    table = steps(real("v100-2024-resnet-nanoseconds"))

    (second,) = table.filter(pl.col("step") == 102).iter_rows(named=True)
    assert second["device_time"] == 95_736_858
    assert second["host_time"] == 72_077_474
    assert second["lag"] == 89_656_968


@pytest.mark.traces
def test_exposed_communication_is_what_no_kernel_covers(real: "ReadReal") -> None:
    table = steps(real("a100-2024-nccl-2ranks"))

    assert table["communication"].to_list() == [10_046_927, 10_432_089, 18_711_653]
    gloo = steps(real("cpu-2024-gloo-rank34"))
    assert gloo["communication"].to_list() == [178_777_427], "told by annotations on the host"


@pytest.mark.traces
def test_annotations_on_the_device_are_no_steps(real: "ReadReal") -> None:
    assert steps(real("mi300-2025-resnet-ddp-recompute"))["step"].to_list() == [15, 16, 17]


def test_a_recording_that_ended_after_a_step_has_it_whole() -> None:
    drawing = "mark 1 | ssss\ns = ProfilerStep#1"
    facts = {"partial": "the program ended", "steps": {"profiled_ns": [40_000]}}
    assert steps(sketch(drawing, metadata={"selftime": facts}))["counted"].to_list() == [True]
    facts["steps"] = {"profiled_ns": []}
    assert steps(sketch(drawing, metadata={"selftime": facts}))["counted"].to_list() == [False]


def test_steps_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(steps, steps(real("v100-2021-resnet50-workers0.pt.trace")))


def test_hidden_communication_is_in_all_of_it() -> None:
    trace = sketch("""
        s = ProfilerStep#3
        n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
        mark 1 | ssssssssss
        call 1 | kn
        gpu 7  |  kkkk
        gpu 9  |    nnnnn
    """)
    table = steps(trace)

    assert table.select("kernel", "communication", "all_communication", "busy").rows() == [
        (40 * US, 30 * US, 50 * US, 70 * US)
    ]


def test_collectives_that_the_host_exchanges_count_beside_device_work() -> None:
    trace = sketch("""
        s = ProfilerStep#3
        g = gloo:all_reduce
        n = nccl:all_reduce
        mark 1 | ssssssssss
        mark 1 |  nn
        mark 2 |      gggg
        call 1 | k
        gpu 7  |  kk
    """)
    table = steps(trace)

    told = table.select("kernel", "communication", "cpu", "busy").rows()
    assert told == [(20 * US, 40 * US, 0, 20 * US)], "a launch of NCCL's is no communication"


def test_a_steps_time_lasts_from_when_the_last_was_done_until_all_it_launched_is_done() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        t = ProfilerStep#1
        u = ProfilerStep#2
        mark 1 | sssstttttttttttuuuuu
        call 1 | k   m
        gpu 7  |   kkkkkmmmm
    """)

    assert steps(trace).select("time", "host_time", "kernel", "other").rows() == [
        (70 * US, 40 * US, 50 * US, 10 * US),
        (80 * US, 110 * US, 40 * US, 40 * US),
        (50 * US, 50 * US, 0, 50 * US),
    ]


def test_a_step_that_is_over_before_the_work_of_the_last_takes_no_time() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        t = ProfilerStep#1
        u = ProfilerStep#2
        mark 1 | ssttuuuu
        call 1 | k
        gpu 7  |   kkkk
    """)

    assert steps(trace)["time"].to_list() == [60 * US, 0, 20 * US]


def test_what_was_launched_before_the_first_step_is_not_its_work() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        mark 1 |  ssssssss
        call 1 |  k
        gpu 7  | oooo kk
    """)

    assert steps(trace).select("time", "kernel").row(0) == (50 * US, 20 * US)


def test_work_launched_by_another_thread_belongs_to_the_step_in_which_it_was_launched() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        t = ProfilerStep#1
        mark 1 | sssssttttt
        call 1 | k    m
        call 2 |    b    c
        gpu 7  |  k  bbbbbbm cccc
    """)

    table = steps(trace)
    assert table["device_slices"].to_list() == [2, 2]
    assert table["lag"].to_list() == [50 * US, 60 * US]
    assert table["device_time"].to_list() == [None, 60 * US]


def test_the_device_time_after_a_pause_is_not_known() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        t = ProfilerStep#1
        u = ProfilerStep#7
        mark 1 | ssssstttt          uuuuu
        call 1 | k    m             n
        gpu 7  |  k    m             n
    """)

    assert steps(trace)["device_time"].to_list() == [None, 50 * US, None]


def test_without_device_work_nothing_is_known_of_it() -> None:
    table = steps(sketch("s = ProfilerStep#0\nmark 1 | ssss\ncpu 1  |  aa"))

    device = ["kernel", "memcpy", "memset", "communication", "all_communication", "busy"]
    assert table.select(device).row(0) == (None,) * 6


def test_loading_on_another_thread_is_no_wait_of_the_steps() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        mark 1 | ssssssss
        mark 2 | ddd
    """)

    assert steps(trace)["data_loading"].to_list() == [None]


def test_marks_of_steps_are_not_work_on_the_host() -> None:
    table = steps(sketch("a = step 1\nb = step 2\nmark 1 | aaaabbbb\ncpu 1 |  x    y"))

    assert table.select("source", "mark", "cpu", "other").rows() == [
        ("annotation", "step 1", 10 * US, 30 * US),
        ("annotation", "step 2", 10 * US, 30 * US),
    ]


def test_long_steps_that_come_often_are_no_outliers() -> None:
    """Where gradients accumulate, each third step is longer by the optimizer."""
    letters = "abcdefghijkl"
    marks = "".join(letter * (9 if n % 3 == 2 else 5) for n, letter in enumerate(letters))
    names = "".join(f"{letter} = ProfilerStep#{n}\n" for n, letter in enumerate(letters))
    table = steps(sketch(f"{names}mark 1 | {marks}"))

    assert table["counted"].to_list() == [False, *[True] * 11]


def test_a_last_step_without_the_work_of_the_others_was_cut_off_on_a_host_too() -> None:
    names = "".join(f"{letter} = ProfilerStep#{n}\n" for n, letter in enumerate("stu"))
    table = steps(sketch(f"{names}mark 1 | ssssssttttttu\ncpu 1  | vwxyzvvwxyzv"))

    assert table["note"][-1] == "partial: its work on the host was cut off"


LETTERS = "kmndgoastpq"
NAMES = (
    "kernel",
    "Memcpy HtoD (Pageable -> Device)",
    "ncclDevKernel_AllReduce",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "gloo:all_reduce",
    "Optimizer.step#SGD.step",
    "aten::mm",
    "step 1",
    "step 2",
    "ProfilerStep#1",
    "ProfilerStep#2",
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any slices on several threads and streams, nested, crossing, empty or without an end."""
    lane = st.sampled_from(("cpu", "mark", "call", "gpu", "copy", "fill", "note"))
    runs = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 8), st.sampled_from(LETTERS)))
    lines = [f"{letter} = {name}" for letter, name in zip(LETTERS, NAMES, strict=True)]
    for _ in range(draw(st.integers(0, 8))):
        strokes = "".join(" " * gap + letter * width for gap, width, letter in draw(runs))
        lines.append(f"{draw(lane)} {draw(st.integers(1, 3))} | {strokes}")
    trace = sketch("\n".join(lines))
    unended = draw(st.sets(st.integers(0, 20)))
    duration = pl.when(pl.col("id").is_in(list(unended))).then(None).otherwise("duration")
    return replace(trace, slices=trace.slices.with_columns(duration=duration))


@given(traces())
def test_categories_add_up_to_the_time_whatever_was_recorded(trace: Trace) -> None:
    table = steps(trace)
    total = table.select(pl.sum_horizontal(pl.col(PARTS).fill_null(0))).to_series()
    assert total.to_list() == table["time"].to_list()
    for part in (*PARTS, "busy", "all_communication", "loading"):
        assert table[part].drop_nulls().is_between(0, table["time"].max() or 0).all(), part
        assert (table[part].fill_null(0) <= table["time"]).all(), part
    parts = table.fill_null(0)
    assert (parts["communication"] <= parts["all_communication"]).all()
    assert (parts["data_loading"] <= parts["loading"]).all()
    on_device = parts["kernel"] + parts["memcpy"] + parts["memset"]
    assert (on_device <= parts["busy"]).all()
    assert (parts["busy"] <= on_device + parts["all_communication"]).all()
    start, end = table["start"], table["start"] + table["host_time"]
    assert (start[1:] >= end[:-1]).all(), "steps do not overlap"


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        (
            "v100-2021-resnet50-workers0.pt.trace",
            [
                (187_948, 98_598, 1_941, 90, 0, 2_796, 69_317, 14_091, 1_115),
                (175_153, 98_570, 1_947, 89, 0, 2_762, 57_669, 12_968, 1_148),
                (179_733, 98_596, 1_931, 91, 0, 2_877, 61_257, 13_768, 1_213),
                (174_564, 98_623, 1_938, 89, 0, 2_841, 56_453, 13_420, 1_200),
                (182_172, 98_504, 1_937, 87, 0, 2_788, 62_690, 15_025, 1_141),
                (165_983, 98_641, 1_798, 88, 0, 3_381, 48_185, 12_773, 1_117),
            ],
        ),
        (
            "v100-2021-resnet50-workers4.pt.trace",
            [
                (182_306, 99_778, 3_606, 98, 0, 41_028, 4_341, 27_460, 5_995),
                (126_183, 99_208, 2_948, 98, 0, 3_406, 0, 16_404, 4_119),
                (127_181, 99_114, 2_949, 98, 0, 3_417, 6, 19_521, 2_076),
                (123_079, 99_021, 2_975, 97, 0, 3_544, 0, 15_464, 1_978),
                (163_461, 98_791, 3_596, 97, 0, 8_275, 1_370, 43_905, 7_427),
                (124_198, 98_956, 2_885, 98, 0, 3_714, 1_400, 13_235, 3_910),
            ],
        ),
    ],
)
def test_where_the_old_plugin_is_right_its_numbers_are_ours(
    real: "ReadReal", name: str, plugin: list[tuple[int, ...]]
) -> None:
    """Of each step the total and its parts in us, as torch-tb-profiler 0.4.3 gives them."""
    table = steps(real(name)).select(pl.col("time", *PARTS) // US)
    assert table.rows() == plugin


@pytest.mark.traces
def test_all_collectives_of_a_trace_are_communication(real: "ReadReal") -> None:
    """The old plugin has 0.35 ms: it knows NCCL's kernels by the names of 2021 alone."""
    table = steps(real("a100-2024-nccl-2ranks"))
    assert round(table["all_communication"].sum() / MS, 1) == 46.9
