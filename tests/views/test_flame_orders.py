"""The orders of the flame graph: bottom up, around one name, flat, and in order of time."""

from typing import TYPE_CHECKING, Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.views.test_flame import METRICS, TRAINING, drawings, drawn

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.views.flame import flame
from selftime.views.operators import operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal

DIRECTIONS: tuple[Literal["top_down", "bottom_up"], ...] = ("top_down", "bottom_up")
OTHERS: tuple[Literal["bottom_up", "flat", "time"], ...] = ("bottom_up", "flat", "time")
RECURSIVE = """
    m = train.py(3): main
    w = tree.py(5): walk
    v = tree.py(5): walk
    o = tree.py(5): walk
    a = aten::add
    b = aten::add
    python 1 | mmmmmmmmmmmmmmmmmmmm
    python 1 |  wwwwwwwwww   oooo
    python 1 |   vvvvvv
    cpu 1    |    aaa  bb     bb
"""


STEPS = """
    s = ProfilerStep#1
    t = ProfilerStep#2
    mark 1 | ssssssttttt
    cpu 1  |  aaa   bbaa
    cpu 1  |  cd     c
"""


def test_bottom_up_begins_with_self_times_and_ends_with_the_outermost_callers() -> None:
    assert drawn(flame(sketch(RECURSIVE), order="bottom_up")) == [
        "tree.py(5): walk 7 0",
        "  train.py(3): main 4 4",
        "  tree.py(5): walk 3 0",
        "    train.py(3): main 3 3",
        "aten::add 7 0",
        "  tree.py(5): walk 7 0",
        "    train.py(3): main 4 4",
        "    tree.py(5): walk 3 0",
        "      train.py(3): main 3 3",
        "train.py(3): main 6 6",
    ]
    assert drawn(flame(sketch(TRAINING), order="bottom_up")) == [
        "gemm 9 0",
        "  autograd::engine::evaluate_function: AddmmBackward0 6 6",
        "  aten::linear 3 0",
        "    torch/nn/modules/linear.py(99): forward 3 0",
        "      nn.Module: Linear_0 3 0",
        "        nn.Module: Net_0 3 0",
        "          train.py(3): main 3 3",
        "Memcpy HtoD (Pageable -> Device) 2 0",
        "  train.py(3): main 2 2",
    ]


def test_flat_counts_recursion_once() -> None:
    assert drawn(flame(sketch(RECURSIVE), order="flat")) == [
        "train.py(3): main 20 6",
        "tree.py(5): walk 14 7",
        "aten::add 7 7",
    ]
    assert flame(sketch(RECURSIVE), order="flat")["count"].to_list() == [1, 3, 3]


def test_small_names_are_one_whose_nested_times_count_once() -> None:
    trace = sketch("cpu 1 | aaaaaaaaaaaaaaaaaaaa bbb\ncpu 1 |  ccccccccc       cc")

    assert drawn(flame(trace, order="flat", min_share=0.2)) == ["a 20 9", "c 11 11", "(other) 3 3"]
    nested = sketch("cpu 1 | aaaaaaaaaaaaaaaaaaaa\ncpu 1 |  bbb\ncpu 1 |  cc")
    assert drawn(flame(nested, order="flat", top=1)) == ["a 20 17", "(other) 3 3"]


def test_of_a_name_there_are_its_callees_and_its_callers() -> None:
    trace = sketch(RECURSIVE)

    assert drawn(flame(trace, of="tree.py(5): walk")) == [
        "tree.py(5): walk 14 4",
        "  tree.py(5): walk 6 3",
        "    aten::add 3 3",
        "  aten::add 4 4",
    ]
    assert drawn(flame(trace, of="tree.py(5): walk", order="bottom_up")) == [
        "tree.py(5): walk 14 0",
        "  train.py(3): main 14 14",
    ]
    assert flame(trace, of="aten::add", kind="kernel").is_empty()
    assert flame(trace, of="no such name").is_empty()
    with pytest.raises(UsageError, match="`kind` is `gpu`; choose one of frame, module"):
        flame(trace, of="aten::add", kind="gpu")
    with pytest.raises(UsageError, match="takes the order top_down or bottom_up, not flat"):
        flame(trace, of="aten::add", order="flat")


def test_in_order_of_time_slices_are_apart_and_begin_when_they_began() -> None:
    table = flame(sketch(RECURSIVE), order="time")

    assert drawn(table) == [
        "train.py(3): main 20 6",
        "  tree.py(5): walk 10 2",
        "    tree.py(5): walk 6 3",
        "      aten::add 3 3",
        "    aten::add 2 2",
        "  tree.py(5): walk 4 2",
        "    aten::add 2 2",
    ]
    assert [start // 10_000 for start in table["start"]] == [0, 1, 2, 3, 8, 14, 15]


def test_in_order_of_time_the_main_thread_is_the_first() -> None:
    host = flame(sketch(TRAINING), order="time", metric="host")
    roots = host.filter(depth=0).select("name", "thread").rows()
    assert roots == [
        ("train.py(3): main", "1"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "2"),
    ]
    assert flame(sketch(TRAINING), order="time", thread="2").filter(depth=0)["thread"][0] == "2"

    device = flame(sketch(TRAINING), order="time")
    leaves = device.filter(pl.col("kind").is_in(["kernel", "copy"]))
    assert leaves.select("name", "thread").rows() == [
        ("Memcpy HtoD (Pageable -> Device)", "1"),
        ("gemm", "1"),
        ("gemm", "2"),
    ]


def test_a_step_is_cut_out_in_order_of_time_and_kept_by_what_began_in_it_otherwise() -> None:
    trace = sketch(STEPS)

    assert drawn(flame(trace, order="time", step="2")) == [
        "ProfilerStep* 5 1",
        "  b 2 1",
        "    c 1 1",
        "  a 2 2",
    ]
    assert drawn(flame(trace, step="1")) == [
        "ProfilerStep* 6 3",
        "  a 3 1",
        "    c 1 1",
        "    d 1 1",
    ]
    with pytest.raises(UsageError, match="`step` is `7`; the steps of the trace are 1 to 2"):
        flame(trace, step="7")

    framed = sketch("m = train.py(3): main\npython 1 | mmmmmmmmmmmmm\n" + STEPS)
    assert drawn(flame(framed, order="time", step="2"))[0] == "train.py(3): main 5 1"
    assert drawn(flame(framed, step="2"))[0] == "train.py(3): main 4 0"


def test_small_slices_beside_each_other_are_one() -> None:
    trace = sketch("cpu 1 | aaaaaaaaaaaaaaaaaaaa\ncpu 1 |  b c ddddd e f g")
    table = flame(trace, order="time", min_share=0.1)

    assert drawn(table) == ["a 20 10", "  (other) 2 2", "  d 5 5", "  (other) 3 3"]
    assert table["start"].to_list() == [0, 10_000, 50_000, 110_000]


@given(drawings(), st.sampled_from(METRICS), st.sampled_from([0.0, 0.2]))
def test_every_order_adds_up_to_the_same(
    drawing: str, metric: Literal["host", "device"], min_share: float
) -> None:
    trace = sketch(drawing)
    whole = flame(trace, metric=metric, min_share=0.0)
    self_times = whole.group_by("name", "kind").agg(pl.col("self_time").sum())

    inverted = flame(trace, metric=metric, order="bottom_up", min_share=0.0)
    roots = inverted.filter(depth=0).select("name", "kind", self_time="total_time")
    assert_same(roots, self_times.filter(pl.col("self_time") > 0))
    listed = flame(trace, metric=metric, order="flat", min_share=0.0)
    both = listed.select("name", "kind", "self_time").filter(pl.col("self_time") > 0)
    assert_same(both, self_times.filter(pl.col("self_time") > 0))

    for name, kind, total in listed.select("name", "kind", "total_time").rows():
        for order in DIRECTIONS:
            table = flame(
                trace, metric=metric, of=name, kind=kind, order=order, min_share=min_share
            )
            assert table["total_time"][0] == total
            assert table["self_time"].sum() == total

    for other in OTHERS:
        table = flame(trace, metric=metric, order=other, min_share=min_share)
        assert table["self_time"].sum() == whole["self_time"].sum()


def assert_same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert sorted(one.rows()) == sorted(other.rows())


@pytest.mark.sweep
@pytest.mark.traces
def test_bottom_up_the_kernels_have_the_self_times_of_operators_in_every_trace(
    real: "ReadReal", real_names: list[str]
) -> None:
    for name in real_names:
        trace = real(name)
        kernels = operators(trace).filter(pl.col("kind").is_in(["kernel", "copy"]))
        expected = kernels.group_by("name").agg(pl.col("self_device_time_total").sum())
        table = flame(trace, metric="device", order="bottom_up", min_share=0.0)
        found = table.filter(depth=0).group_by("name").agg(pl.col("total_time").sum())
        expected = expected.cast({"name": pl.String}).filter(pl.col("self_device_time_total") > 0)
        assert sorted(found.rows()) == sorted(expected.rows()), name
