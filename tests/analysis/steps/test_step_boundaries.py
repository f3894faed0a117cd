"""Where steps begin and end, by every kind of evidence."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from selftime.analysis.steps.step_boundaries import STEP_SOURCES, find_steps
from selftime.testing import sketch
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.conftest import ReadReal

US = 1_000


def told(drawing: str) -> list[tuple[object, ...]]:
    """Source, number, begin and end in columns of the drawing, and what is missing."""
    column = 10 * US
    steps = find_steps(sketch(drawing))
    return steps.select(
        "source", "number", pl.col("start") // column, pl.col("end") // column, "cut"
    ).rows()


def test_nothing_recorded_has_no_steps() -> None:
    assert find_steps(Trace()).is_empty()


# The profiler's steps


def test_of_steps_on_two_threads_the_busier_thread_tells() -> None:
    assert told("""
        a = ProfilerStep#1
        b = ProfilerStep#2
        c = ProfilerStep#7
        mark 1 | aaaabbbb
        mark 2 |  cccccc
    """) == [("profiler", 1, 0, 4, None), ("profiler", 2, 4, 8, None)]


def test_steps_that_two_profilers_mark_count_once() -> None:
    assert told("""
        a = ProfilerStep#1
        b = ProfilerStep#2
        mark 1 | aaaabbbb
        mark 1 |  aa  bb
    """) == [("profiler", 1, 0, 4, None), ("profiler", 2, 4, 8, None)]


OUTLASTING = """
    s = ProfilerStep#1
    o = PyTorch Profiler (0)
    mark 1 | %s
    overhead 2 | ooooo
    cpu 1 | aa
"""


def of_recorder(drawing: str) -> Trace:
    """The drawing, its row `overhead` being the recorder's own span."""
    trace = sketch(drawing)
    category = trace.slices["category"].cast(pl.String).replace("overhead", "trace")
    return replace(trace, slices=trace.slices.with_columns(category.cast(pl.Categorical())))


def test_a_step_that_outlasts_the_recorder_ends_with_it() -> None:
    steps = find_steps(of_recorder(OUTLASTING % ("s" * 900)))
    assert steps.select("end", "cut").rows() == [(50 * US, "the recording ended within it")]


def test_a_step_whose_mark_ends_with_the_recorder_is_whole() -> None:
    steps = find_steps(of_recorder(OUTLASTING % "sssss"))
    assert steps.select("end", "cut").rows() == [(50 * US, None)]


def test_a_step_that_outlasts_the_recorder_has_all_work_that_was_recorded() -> None:
    """Device work may be recorded that ends after the recorder's own span."""
    steps = find_steps(of_recorder(f"{OUTLASTING % ('s' * 900)}    gpu 7 |      kkk"))
    assert steps["end"].to_list() == [80 * US]


def test_a_step_around_many_is_none() -> None:
    assert told("""
        o = ProfilerStep#0
        a = ProfilerStep#1
        b = ProfilerStep#2
        mark 1 | oooooooooo
        mark 1 |  aaaabbbb
    """) == [("profiler", 1, 1, 5, None), ("profiler", 2, 5, 9, None)]


def test_a_step_whose_end_is_not_known_lasts_until_the_next_or_the_end() -> None:
    trace = sketch("a = ProfilerStep#1\nb = ProfilerStep#2\nmark 1 | aaabbb\ncpu 1  |  x  yyyy")
    unended = pl.when(pl.col("name").cast(pl.String).str.starts_with("Prof")).then(None)
    slices = trace.slices.with_columns(duration=unended.otherwise("duration"))
    steps = find_steps(Trace(slices=slices, tracks=trace.tracks))

    cut = "its end was not recorded"
    assert steps.select("number", "start", "end", "cut").rows() == [
        (1, 0, 30 * US, cut),
        (2, 30 * US, 80 * US, cut),
    ]


def test_numbers_may_come_twice() -> None:
    assert [step[1] for step in told("s = ProfilerStep#6\nmark 1 | sss sss sss")] == [6, 6, 6]


# Annotations


def test_numbered_rounds_are_steps_and_hold_what_lies_between() -> None:
    assert told("""
        a = iteration 7
        b = iteration 8
        mark 1 | aaaa  bbbb
        cpu 1  |  x     x
    """) == [("annotation", 7, 0, 4, None), ("annotation", 8, 4, 10, None)]


def test_equal_ranges_are_steps_if_there_are_three() -> None:
    assert told("t = train\nmark 1 | ttt ttt ttt") == [
        ("annotation", 0, 0, 3, None),
        ("annotation", 1, 3, 7, None),
        ("annotation", 2, 7, 11, None),
    ]
    assert [step[0] for step in told("t = train\nmark 1 | ttt ttt")] == ["window"]


def test_ranges_that_take_turns_are_steps_together() -> None:
    assert told("mark 1 | ffbbuffbbuffbb\nf = forward\nb = backward\nu = my update") == [
        ("annotation", 0, 0, 5, None),
        ("annotation", 1, 5, 10, None),
        ("annotation", 2, 10, 14, "the recording ended within it"),
    ]


def test_ranges_one_after_the_other_are_no_steps() -> None:
    assert [step[0] for step in told("mark 1 | aaa aaa aaa bbb bbb bbb ccc ccc ccc")] == ["window"]


def test_a_small_range_in_each_step_is_not_the_step() -> None:
    assert [step[0] for step in told("l = log\nmark 1 | l   l   l\ncpu 1  | xxx xxx xxx")] == [
        "window"
    ]


def test_the_layers_of_a_network_are_no_steps_though_they_are_numbered() -> None:
    assert [s[0] for s in told("a = layer 0\nb = layer 1\nc = layer 2\nmark 1 | aaabbbccc")] == [
        "window"
    ]


def test_the_steps_within_epochs_are_told_by_their_names() -> None:
    steps = told("""
        e = epoch 0
        f = epoch 1
        a = batch 0
        b = batch 1
        mark 1 | eeeeeeeeffffffff
        mark 1 |  aaabbb  aaabbb
    """)
    assert [step[:2] for step in steps] == [("annotation", number) for number in range(4)]


def test_a_thread_that_does_little_tells_no_steps() -> None:
    work = "ab" * 20
    assert [s[0] for s in told(f"h = heartbeat\nmark 2 | hhhhh hhhhh hhhhh\ncpu 1  | {work}")] == [
        "window"
    ]


def test_annotations_on_a_device_are_no_steps() -> None:
    assert [step[0] for step in told("a = step 1\nb = step 2\nnote 7 | aaabbb\ncpu 1 | x")] == [
        "window"
    ]


# Optimizer steps


def test_a_single_optimizer_step_tells_no_step() -> None:
    assert [step[0] for step in told("o = Optimizer.step#SGD.step\nmark 1 |  oo")] == ["window"]


def test_what_follows_the_last_optimizer_step_had_not_ended() -> None:
    assert told("o = Optimizer.step#SGD.step\nmark 1 |  oo  oo\ncpu 1 | x   x  xx") == [
        ("optimizer", 0, 0, 3, "it began before"),
        ("optimizer", 1, 3, 7, None),
        ("optimizer", 2, 7, 9, "the recording ended within it"),
    ]


# Periodicity

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_batches_tell_the_steps_of_a_loop_without_an_optimizer() -> None:
    assert told(f"d = {LOADER}\nmark 1 | d    d    d    d\ncpu 1  |  abca abca abca ab") == [
        ("periodicity", 0, 0, 5, None),
        ("periodicity", 1, 5, 10, None),
        ("periodicity", 2, 10, 15, None),
        ("periodicity", 3, 15, 18, "the recording ended within it"),
    ]


def test_batches_of_different_work_tell_no_steps() -> None:
    assert [
        s[0] for s in told(f"d = {LOADER}\nmark 1 | d    d    d\ncpu 1  |  abca efgh ijkl")
    ] == ["window"]


UPLOADS = "call 1 | k      k      k      k      k\ncopy 7 |  k      k      k      k      k\n"


def test_inputs_copied_to_the_device_tell_the_steps() -> None:
    names = "u = aten::to\nk = Memcpy HtoD (Pageable -> Device)\n"
    drawing = "cpu 1  | uuabcdeuuabcdeuuabcdeuuabcdeuuab\n"
    steps = told(names + UPLOADS + drawing)
    assert [step[0] for step in steps] == ["periodicity"] * 5
    assert [step[2] for step in steps] == [0, 7, 14, 21, 28]
    assert steps[-1][-1] == "the recording ended within it"


def test_weights_copied_for_each_layer_of_one_pass_tell_no_steps() -> None:
    """A network begins and ends with other operators than its layers."""
    names = "u = aten::to\nk = Memcpy HtoD (Pageable -> Device)\n"
    drawing = "cpu 1  | uuabcdeuuabcdeuuabcdeuuabcdeuuabxyz\n"
    assert [step[0] for step in told(names + UPLOADS + drawing)] == ["window"]


def renamed(trace: Trace, pattern: str) -> Trace:
    """The trace with marks of these names given other names, no two alike."""
    name, category = (pl.col(column).cast(pl.String) for column in ("name", "category"))
    marks = name.str.contains(pattern)
    slices = trace.slices.with_columns(
        name=pl.when(marks).then(pl.format("mark {}", "id")).otherwise(name).cast(pl.Categorical),
        category=pl.when(marks)
        .then(pl.lit("user_annotation"))
        .otherwise(category)
        .cast(pl.Categorical),
    )
    return replace(trace, slices=slices)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "pattern", "source"),
    [
        ("a100-2022-diff-control", "^ProfilerStep", "annotation"),
        ("v100-2024-resnet-nanoseconds", "^ProfilerStep", "annotation"),
        ("a100-2024-nccl-2ranks", "^ProfilerStep", "annotation"),
        ("v100-2021-resnet50-workers0.pt.trace", "^ProfilerStep", "optimizer"),
        ("mi300-2025-resnet-ddp-recompute", "^ProfilerStep", "optimizer"),
        ("v100-2021-resnet50-workers0.pt.trace", "^(ProfilerStep|Optimizer)", "periodicity"),
        ("v100-2021-resnet50-workers4.pt.trace", "^(ProfilerStep|Optimizer)", "periodicity"),
        ("v100-2021-resnet50-workers0.pt.trace", "^(ProfilerStep|Optimizer|enum)", "periodicity"),
    ],
)
def test_whatever_tells_the_steps_they_take_as_long(
    real: "ReadReal", name: str, pattern: str, source: str
) -> None:
    expected, found = find_steps(real(name)), find_steps(renamed(real(name), pattern))
    whole = found.filter(pl.col("cut").is_null())

    assert found["source"].unique().to_list() == [source]
    assert whole.height >= expected.height - 1
    times = [(steps["end"] - steps["start"]).to_numpy() for steps in (whole, expected)]
    assert np.median(times[0]) == pytest.approx(np.median(times[1]), rel=0.03)


@pytest.mark.traces
@pytest.mark.parametrize(
    "name",
    [
        "v100-2024-resnet-nanoseconds",  # it neither loads nor copies anything
        "h100-2025-vit",  # one pass of many layers
        "h100-2025-qwen-0.5b",
        "mi300-2025-bert-small",
    ],
)
def test_where_nothing_tells_steps_the_recording_is_one(real: "ReadReal", name: str) -> None:
    trace = renamed(real(name), "^(ProfilerStep|Optimizer|##|Distributed)")
    assert find_steps(trace)["source"].to_list() == ["window"]


@pytest.mark.traces
def test_steps_are_in_order_and_apart_in_every_trace(
    real: "ReadReal", real_names: list[str]
) -> None:
    for name in real_names:
        steps = find_steps(real(name))
        start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
        assert (end > start).all(), name
        assert (start[1:] >= end[:-1]).all(), name
        assert steps["source"].n_unique() == 1, name
        assert steps["source"][0] in STEP_SOURCES, name
