from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.flame import flame
from selftime.views.lines import lines
from selftime.views.operators import operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

COLUMN = 10_000

STEP = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 1 |   d         e
    cpu 1  | a bccm    a bccm
    s = ProfilerStep#1
    t = ProfilerStep#2
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    e = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    a = aten::argmax; input_types = ["double"]; input_shapes = [[8]]; line = train.py:51 train
    b = aten::stack; line = train.py:39 train
    c = aten::conv2d; input_types = ["double","double"]; input_shapes = [[8],[8]]; line = net.py:5 f
    m = aten::mul; input_types = ["float","double"]; input_shapes = [[8],[]]; line = net.py:6 f
"""


def test_no_events_no_lines() -> None:
    assert lines(Trace()).is_empty()


def test_each_line_has_its_time() -> None:
    table = lines(sketch(STEP)).filter(pl.col("file").is_not_null())
    assert table.select("file", "line", "operators", "self_cpu_time").rows() == [
        ("net.py", 5, 2, 4_000_000),
        ("net.py", 6, 2, 2_000_000),
        ("train.py", 39, 2, 2_000_000),
        ("train.py", 51, 2, 2_000_000),
    ]


def test_a_dtype_keeps_what_computes_in_it() -> None:
    """A double without dimensions beside a float tensor makes no arithmetic in double."""
    table = lines(sketch(STEP), dtype="double")
    assert sorted(table["line"].to_list()) == [5, 51]


def test_time_counts_from_the_batch_and_not_from_the_end_of_the_loop() -> None:
    """The loop's end runs first in each step, and last after its batch."""
    table = lines(sketch(STEP), dtype="double").sort("since_batch")
    assert table.select("line", "since_batch").rows() == [(5, 1_000_000), (51, 8_000_000)]


def test_counted_keeps_the_steps_that_count() -> None:
    third = STEP.replace("sssssssssstttttttttt", "sssssssssstttttttttt" + "u" * 10)
    table = lines(sketch(third + "    u = ProfilerStep#3\n"), counted=True)
    assert table.filter(pl.col("line") == 5)["operators"].to_list() == [1]  # not of the first


def test_top_keeps_the_first_rows() -> None:
    assert lines(sketch(STEP), top=1).height == 1


STACKS = """
    m = train.py(3): main
    w = net.py(20): forward
    t = torch/nn/functional.py(99): linear
    l = <built-in method acquire of _thread.lock object at 0x7f00>
    a = aten::linear; line = net.py:20 forward definition
    y = cudaDeviceSynchronize
    k = gemm
    python 1 | mmmmmmmmmmmmmmmmmmmm
    python 1 |  wwwwwwwww       ll
    python 1 |   tttttt
    cpu 1    |    aaa
    call 1   |     k        yyy
    gpu 7    |      kkkkkkkkkk
    gpu 8    | ooooo
"""


def told(table: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """Rows of a table by file and line, with times in columns of a drawing."""
    times = [name for name in columns if "time" in name or name == "waits"]
    return table.select("file", "line", *columns).with_columns(pl.col(times) // COLUMN).rows()


def test_python_itself_counts_to_the_definition_of_the_users_function() -> None:
    """Also that of the library functions which it called."""
    table = lines(sketch(STACKS))

    columns = ("self_cpu_time", "total_cpu_time", "python_time", "operators")
    assert told(table, *columns) == [
        ("net.py", 20, 9, 9, 6, 2),
        (None, None, 0, None, 0, 0),
        ("train.py", 3, 11, 20, 8, 1),
    ]
    assert table["how"].to_list() == ["definition", None, "definition"]


def test_device_time_counts_to_the_line_that_launched_it_and_to_those_around() -> None:
    """What nobody launched in the recording is elsewhere."""
    columns = ("device_time", "total_device_time", "device_slices")
    assert told(lines(sketch(STACKS)), *columns) == [
        ("net.py", 20, 10, 10, 1),
        (None, None, 5, None, 1),
        ("train.py", 3, 0, 10, 0),
    ]


def test_waits_are_for_the_device_or_for_another_thread() -> None:
    assert told(lines(sketch(STACKS)), "waits") == [
        ("net.py", 20, 0),
        (None, None, 0),
        ("train.py", 3, 5),
    ]


def test_a_thread_that_only_waits_comes_last() -> None:
    trace = sketch("""
        b = tqdm/_monitor.py(60): run
        w = threading.py(359): wait
        m = train.py(3): main
        python 1 | bbbbbbbbbbbbbbbbb
        python 1 |  wwwwwwwwwwwwwwww
        python 2 | mm
    """)

    assert told(lines(trace), "self_cpu_time", "waits") == [
        ("train.py", 3, 2, 0),
        ("tqdm/_monitor.py", 60, 17, 16),
    ]


def test_a_file_has_one_name() -> None:
    """Frames name it as seen from a folder of `sys.path`, saved lines whole."""
    trace = sketch("""
        f = net.py(5): forward
        g = other.py(5): forward
        a = aten::mm; line = /srv/one/net.py:5 forward definition
        b = aten::mm; line = /srv/one/other.py:8 forward
        c = aten::mm; line = /srv/two/other.py:9 forward
        python 1 | ffffff ggg
        cpu 1    |  aa         b c
    """)

    assert told(lines(trace), "self_cpu_time") == [
        ("/srv/one/net.py", 5, 6),
        ("other.py", 5, 3),
        ("/srv/one/other.py", 8, 1),
        ("/srv/two/other.py", 9, 1),
    ]


def test_recursion_counts_once_in_totals() -> None:
    trace = sketch("""
        f = tree.py(5): visit
        g = tree.py(9): child
        python 1 | ffffffffff
        python 1 |  gggggggg
        python 1 |   ffffff
    """)

    assert told(lines(trace), "self_cpu_time", "total_cpu_time") == [
        ("tree.py", 5, 8, 10),
        ("tree.py", 9, 2, 8),
    ]


BACKWARD = """
    m = train.py(3): main
    a = aten::mul; line = net.py:7 forward stack; sequence = 4; forward_thread = 0
    v = CheckpointBackward; forward_thread = 1; forward = a; line = train.py:3 main definition
    u = aten::mul
    c = fn.py(30): backward
    e = aten::exp; line = fn.py:30 backward definition
    r = aten::mul; sequence = 9; forward_thread = 0; line = net.py:7 forward stack
    g = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad; forward = a
    python 1 | mmmmmmmmmmmmmmmmmmmmmmm
    cpu 1    |  aa
    call 1   |   k
    python 2 |               ccc
    cpu 2    |         vvvvvvvvvvvv gg
    cpu 2    |           uu   e rrr
    call 2   |            p      q   t
    gpu 7    |    kkkk   pppppp qq   tt
"""


def test_the_backward_pass_and_what_it_recomputes_count_to_the_line_of_the_forward() -> None:
    """The user's own code in it has its own line; the sum of gradients is nobody's."""
    table = lines(sketch(BACKWARD))

    times = ("device_time", "backward_device_time", "recompute_device_time")
    host = ("self_cpu_time", "backward_cpu_time", "recompute_cpu_time")
    assert told(table, *times, *host) == [
        ("net.py", 7, 12, 6, 2, 11, 6, 3),
        (None, None, 2, 2, 0, 2, 2, 0),
        ("train.py", 3, 0, 0, 0, 21, 0, 0),
        ("fn.py", 30, 0, 0, 0, 3, 3, 0),
    ]
    assert told(table, "total_cpu_time")[0] == ("net.py", 7, 14)


REDUCED = """
    m = train.py(3): main
    b = torch/autograd/graph.py(825): _engine_run_backward
    a = aten::mul; line = net.py:7 forward stack; sequence = 4; forward_thread = 0
    v = MulBackward0; forward_thread = 1; forward = a
    g = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad; forward = a
    r = nccl:all_reduce
    python 1 | mmmmmmmmmmmmmmmmmmmmmmm
    python 1 |       bbbbbbbbbbbb
    cpu 1    |  aa
    cpu 2    |         vvvv ggggg  ggg
    cpu 2    |               rrr
    call 2   |           p    q     t
    gpu 7    |            pppp      tt
    gpu 8    |                qqqqq
"""


def test_reduced_gradients_count_to_the_line_that_called_backward() -> None:
    """Known by the frame that was in the call at the time; after it nothing is known."""
    table = lines(sketch(REDUCED))

    assert told(table, "device_time", "total_device_time") == [
        ("train.py", 3, 5, 9),
        ("net.py", 7, 4, 4),
        (None, None, 2, None),
    ]


def test_of_two_threads_that_call_backward_none_is_named() -> None:
    two = REDUCED.replace("    cpu 1 ", "    python 3 |       bbbbbbbbbbbb\n    cpu 1 ")

    assert told(lines(sketch(two)), "device_time")[0] == (None, None, 7)


def test_a_step_is_on_no_line() -> None:
    """It began where the step before ended."""
    trace = sketch("""
        s = ProfilerStep#1; line = train.py:54 main
        a = aten::mm; line = net.py:5 f
        mark 1   | ssssssssss
        cpu 1    |   aaa
    """)

    assert told(lines(trace), "self_cpu_time") == [(None, None, 7), ("net.py", 5, 3)]


def test_memory_that_a_line_keeps() -> None:
    """What no operator allocated or released is elsewhere; without records memory is unknown."""
    trace = sketch("""
        a = aten::empty; line = net.py:5 f
        b = aten::add; line = net.py:6 f
        K = one; bytes = 512; device_type = 1; device = 0
        T = two; bytes = 256; device_type = 1; device = 0
        H = host; bytes = 64; device_type = 0; device = -1
        cpu 1    | aaaa bbbb
        memory 1 | KTt   H   k
    """)

    assert told(lines(trace), "device_memory", "cpu_memory") == [
        ("net.py", 5, 512, 0),
        ("net.py", 6, 0, 64),
        (None, None, -512, 0),
    ]
    assert lines(sketch(STEP)).select("device_memory", "cpu_memory").null_count().row(0) == (5, 5)


def test_within_keeps_what_began_while_such_a_slice_was_open_on_the_thread() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        m = train.py(3): main
        a = aten::mm; line = net.py:5 f
        b = aten::mm; line = net.py:5 f
        mark 1   |   sssss
        python 1 | mmmmmmmmmmm
        cpu 1    | a  bbb  a
        cpu 2    |    bbb
    """)

    assert told(lines(trace, within="ProfilerStep"), "self_cpu_time") == [("net.py", 5, 3)]


LANES = st.text("  abcdef", max_size=26)
LEGEND = """
    a = train.py(3): main
    b = net.py(20): forward
    c = aten::mul; line = net.py:7 forward; sequence = 4; forward_thread = 0
    d = MulBackward0; forward_thread = 1; forward = c
    e = aten::exp; line = net.py:7 forward
    f = cudaStreamSynchronize
"""


@given(st.lists(LANES, min_size=9, max_size=9))
def test_rows_add_up_to_all_there_is(lanes: list[str]) -> None:
    kinds = [*["python 1"] * 2, *["cpu 1"] * 2, "call 1", "mark 1", "cpu 2", "gpu 7", "gpu 8"]
    drawing = "\n".join(f"{kind} | {lane}" for kind, lane in zip(kinds, lanes, strict=True))
    _check(sketch(f"{LEGEND}\n{drawing}"))


def _check(trace: Trace) -> None:
    table = lines(trace)
    kernels = operators(trace).filter(pl.col("kind").is_in(["kernel", "copy"]))
    assert table["device_time"].sum() == kernels["self_device_time_total"].sum()
    assert table["self_cpu_time"].sum() == flame(trace, metric="host")["self_time"].sum()
    for own, total in (("device_time", "total_device_time"), ("self_cpu_time", "total_cpu_time")):
        assert (table[own] <= table[total]).all()
        assert (table[total] <= table[own].sum()).all()
        time = own.removeprefix("self_")
        passes = table.select(f"backward_{time}", f"recompute_{time}").sum_horizontal()
        assert (passes <= table[own]).all()
    assert (table["waits"] <= table["self_cpu_time"]).all()


@pytest.mark.traces
def test_rows_add_up_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        _check(real(name))


@pytest.mark.traces
def test_without_frames_host_time_is_that_of_the_operators(real: "ReadReal") -> None:
    trace = real("v100-2021-resnet50-workers0.pt.trace")
    assert lines(trace)["self_cpu_time"].sum() == operators(trace)["self_cpu_time_total"].sum()


def test_lines_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(lines, lines(real("v100-2021-resnet50-workers0.pt.trace")))
