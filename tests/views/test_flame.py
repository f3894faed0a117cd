from typing import TYPE_CHECKING, Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.flame import flame
from selftime.views.operators import operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
COLUMN = 10_000

TRAINING = """
    m = train.py(3): main
    n = nn.Module: Net_0; module_id = 0
    l = nn.Module: Linear_0; module_id = 0
    f = torch/nn/modules/linear.py(99): forward
    a = aten::linear; sequence = 7; forward_thread = 0
    e = autograd::engine::evaluate_function: AddmmBackward0; forward_thread = 1; forward = a
    k = gemm
    q = gemm
    c = Memcpy HtoD (Pageable -> Device)
    python 1 | mmmmmmmmmmmmmmmmmmmmmmmm
    python 1 |   nnnnnnnn
    python 1 |    llllll
    python 1 |     fffff
    cpu 1    |      aaa
    call 1   |       k
    call 1   | c
    cpu 2    |             eeeee
    call 2   |               q
    gpu 7    |         kkk      qqqqqq
    copy 8   |   cc
"""


def drawn(table: pl.DataFrame) -> list[str]:
    """The tree as text: name, total, own time, in columns of a drawing."""
    rows = table.select("depth", "name", "total_time", "self_time").rows()
    return [
        f"{'  ' * depth}{name} {total // COLUMN} {own // COLUMN}"
        for depth, name, total, own in rows
    ]


def test_nothing_recorded_has_no_tree() -> None:
    assert flame(Trace()).is_empty()


def test_equal_names_within_equal_names_are_one() -> None:
    trace = sketch("""
        s = train.py(9): step
        a = aten::linear
        b = aten::addmm
        python 1 | sssssssss  ssssss
        cpu 1    |  aaaa bb    aaaa
        cpu 1    |   bb         bbb
    """)
    table = flame(trace)

    assert drawn(table) == [
        "train.py(9): step 15 5",
        "  aten::linear 8 3",
        "    aten::addmm 5 5",
        "  aten::addmm 2 2",
    ]
    assert table.select("kind", "count", "file", "line", "id", "parent").rows() == [
        ("frame", 2, "train.py", 9, 0, None),
        ("operator", 2, None, None, 1, 0),
        ("operator", 2, None, None, 2, 1),
        ("operator", 1, None, None, 3, 0),
    ]
    assert table["share"].to_list() == pytest.approx([1, 8 / 15, 5 / 15, 2 / 15])


def test_kernels_are_the_leaves_of_device_time_and_calls_are_left_out() -> None:
    assert drawn(flame(sketch(TRAINING))) == [
        "autograd::engine::evaluate_function: AddmmBackward0 6 0",
        "  gemm 6 6",
        "train.py(3): main 5 0",
        "  nn.Module: Net_0 3 0",
        "    nn.Module: Linear_0 3 0",
        "      torch/nn/modules/linear.py(99): forward 3 0",
        "        aten::linear 3 0",
        "          gemm 3 3",
        "  Memcpy HtoD (Pageable -> Device) 2 2",
    ]


def test_by_module_the_backward_pass_is_within_the_module_of_its_forward_operator() -> None:
    assert drawn(flame(sketch(TRAINING), by="module")) == [
        "train.py(3): main 11 0",
        "  nn.Module: Net_0 9 0",
        "    nn.Module: Linear_0 9 0",
        "      aten::linear 9 0",
        "        autograd::engine::evaluate_function: AddmmBackward0 6 0",
        "          gemm 6 6",
        "        gemm 3 3",
        "  Memcpy HtoD (Pageable -> Device) 2 2",
    ]


def test_host_time_is_that_of_frames_operators_and_calls() -> None:
    assert drawn(flame(sketch(TRAINING), metric="host")) == [
        "train.py(3): main 24 15",
        "  nn.Module: Net_0 8 2",
        "    nn.Module: Linear_0 6 1",
        "      torch/nn/modules/linear.py(99): forward 5 2",
        "        aten::linear 3 2",
        "          gemm 1 1",
        "  Memcpy HtoD (Pageable -> Device) 1 1",
        "autograd::engine::evaluate_function: AddmmBackward0 5 4",
        "  gemm 1 1",
    ]


def test_a_thread_has_its_own_tree() -> None:
    assert drawn(flame(sketch(TRAINING), thread="2")) == [
        "autograd::engine::evaluate_function: AddmmBackward0 6 0",
        "  gemm 6 6",
    ]
    with pytest.raises(UsageError, match="`thread` is `9`; the trace has the host threads 1, 2"):
        flame(sketch(TRAINING), thread="9")


def test_an_annotation_that_crosses_frames_is_around_what_ran_in_between() -> None:
    """`record_function` begins within `__enter__` and ends within `__exit__`."""
    trace = sketch("""
        m = train.py(3): main
        i = torch/autograd/profiler.py(1): __enter__
        o = torch/autograd/profiler.py(2): __exit__
        f = net.py(8): forward
        r = my part
        a = aten::mm
        python 1 | mmmmmmmmmmmmmmmm
        python 1 |  iii ffffff ooo
        python 1 |
        mark 1   |    rrrrrrrrrr
        cpu 1    |       aa
    """)

    assert drawn(flame(trace)) == [
        "train.py(3): main 16 2",
        "  my part 8 2",
        "    net.py(8): forward 6 4",
        "      aten::mm 2 2",
        "  torch/autograd/profiler.py(1): __enter__ 3 3",
        "  torch/autograd/profiler.py(2): __exit__ 3 3",
    ]


def test_steps_are_one_where_there_are_no_frames_and_none_where_there_are() -> None:
    steps = "s = ProfilerStep#1\nt = ProfilerStep#2\nmark 1 | sssstttt\ncpu 1  |  aa  bb"
    assert drawn(flame(sketch(steps))) == ["ProfilerStep* 8 4", "  a 2 2", "  b 2 2"]

    framed = sketch(f"m = train.py(3): main\npython 1 | mmmmmmmmm\n{steps}")
    assert drawn(flame(framed)) == ["train.py(3): main 9 5", "  a 2 2", "  b 2 2"]


def test_counted_keeps_what_began_in_the_steps_that_count() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        mark 1 | sssstttttuuuu
        cpu 1  | aa  aaaa aaa
    """)
    whole = flame(trace).filter(name="a")
    kept = flame(trace, counted=True).filter(name="a")

    assert whole.select("count", "total_time").rows() == [(3, 90 * US)]
    assert kept.select("count", "total_time").rows() == [(2, 70 * US)]


def test_small_nodes_are_joined_below_their_parent() -> None:
    trace = sketch("cpu 1 | aaaaaaaaaaaaaaaaaaaa b\ncpu 1 |  ccccccccc d e f")
    table = flame(trace, min_share=0.1)

    assert drawn(table) == [
        "a 20 8",
        "  c 9 9",
        "  (other) 3 3",
        "(other) 1 1",
    ]
    assert table.filter(kind="other")["count"].to_list() == [3, 1]


def test_top_bounds_the_nodes_and_totals_stay_whole() -> None:
    trace = sketch("cpu 1 | aaaaaaaaaaaaaaaaaaaa b\ncpu 1 |  ccccccccc d e f")

    assert drawn(flame(trace, top=1)) == ["a 20 8", "  (other) 12 12", "(other) 1 1"]


def test_addresses_of_objects_are_left_out() -> None:
    trace = sketch("""
        a = <built-in method add_ of Tensor object at 0x7f00>
        b = <built-in method add_ of Tensor object at 0x7f01>
        python 1 | aa bb
    """)
    assert flame(trace).select("name", "count").rows() == [
        ("<built-in method add_ of Tensor object>", 2)
    ]


def test_refuses_numbers_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        flame(Trace(), min_share=2)
    with pytest.raises(UsageError, match="0 for all"):
        flame(Trace(), top=-1)


BY: tuple[Literal["stack", "module"], ...] = ("stack", "module")
METRICS: tuple[Literal["host", "device"], ...] = ("host", "device")
LANES = st.text("  abcdef", max_size=24)


@st.composite
def drawings(draw: st.DrawFn) -> str:
    """Two threads with frames, operators and calls that nest and cross, and two streams."""
    lanes = [
        f"{lane} | {draw(LANES)}"
        for lane in ("python 1", "python 1", "cpu 1", "cpu 1", "call 1", "mark 1", "cpu 2")
    ]
    return "\n".join([*lanes, f"gpu 7 | {draw(LANES)}", f"gpu 8 | {draw(LANES)}"])


@given(drawings(), st.sampled_from(METRICS), st.sampled_from(BY))
def test_own_times_add_up_to_totals(
    drawing: str, metric: Literal["host", "device"], by: Literal["stack", "module"]
) -> None:
    trace = sketch(drawing)
    whole = flame(trace, metric=metric, by=by, min_share=0.0)
    some = flame(trace, metric=metric, by=by, min_share=0.2, top=3)

    for table in (whole, some):
        roots = table.filter(pl.col("parent").is_null())
        assert table["self_time"].sum() == roots["total_time"].sum() == whole["self_time"].sum()
        assert (table["self_time"] <= table["total_time"]).all()
        assert (table["self_time"] >= 0).all()
        within = table.group_by("parent").agg(pl.col("total_time").sum().alias("inside"))
        joined = table.join(within, left_on="id", right_on="parent", how="left")
        sums = joined["self_time"] + joined["inside"].fill_null(0)
        assert sums.to_list() == joined["total_time"].to_list()


@pytest.mark.sweep
@pytest.mark.traces
def test_device_time_is_that_of_the_operators_in_every_trace(
    real: "ReadReal", real_names: list[str]
) -> None:
    for name in real_names:
        trace = real(name)
        kernels = operators(trace).filter(pl.col("kind").is_in(["kernel", "copy"]))
        expected = kernels["self_device_time_total"].sum()
        for by in BY:
            table = flame(trace, metric="device", by=by)
            assert table["self_time"].sum() == expected, name


def test_flame_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    table = flame(real("mi300-2025-resnet-ddp-recompute"), by="module", top=14)
    golden(flame, table)
