"""The account of the step: classes, lines, and rows that add up to the nanosecond."""

from collections.abc import Callable

import polars as pl
import pytest

from selftime.advice import advise
from selftime.analysis.account.step_account import account_segments
from selftime.analysis.account.time_classes import TIME_CLASSES
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.account import account

STEPS = """
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | ddd         ddd         ddd
    cpu 1  |    aaa         aaa         aaa
    call 1 |     kxyyyyyy    kxyyyyyy    kxyyyyyy
    gpu 7  |      kkkkkkk     kkkkkkk     kkkkkkk
    gpu 8  |       xx          xx          xx
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    a = aten::mm; line = train.py:7 step
    y = cudaStreamSynchronize
"""
ON_CPU = """
    mark 1   | ssssssssssssssss
    python 1 |  ffffffffffffff
    python 1 |     cc  gg
    cpu 1    |  aa         bbb
    s = ProfilerStep#1
    f = train.py(3): main
    c = torch/_dynamo/convert_frame.py(9): __call__
    g = <built-in function collect>
    a = aten::mm
    b = aten::add
"""


def classes(trace: Trace) -> dict[str, float]:
    return dict(account(trace, by="class").select("class", "per_step").iter_rows())


def assert_adds_up(trace: Trace) -> None:
    steps = steps_with_counted_flags(trace)
    wanted = dict(steps.select("number", pl.col("done") - pl.col("begin")).iter_rows())
    found = account_segments(trace).with_columns(time=pl.col("end") - pl.col("start"))
    summed = dict(found.group_by("step").agg(pl.col("time").sum()).iter_rows())
    assert summed == {number: time for number, time in wanted.items() if time}
    counted = steps.filter("counted") if steps["counted"].any() else steps
    for by in ("class", "what", "line", "step"):
        table = account(trace, by=by)
        assert table["time"].sum() == (counted["done"] - counted["begin"]).sum()
        assert set(table["class"]) <= set(TIME_CLASSES)


def test_an_empty_trace_has_no_account() -> None:
    assert account(Trace()).is_empty()


def test_each_moment_has_one_class() -> None:
    found = classes(sketch(STEPS))
    assert found == {"compute": 70_000, "data_wait": 30_000, "launch": 20_000}


def test_a_row_has_the_line_and_the_operator_that_launched_it() -> None:
    row = account(sketch(STEPS)).row(0, named=True)
    assert (row["class"], row["file"], row["line"], row["what"]) == (
        "compute",
        "train.py",
        7,
        "aten::mm",
    )
    assert row["share"] == pytest.approx(70 / 120)


def test_without_a_device_operators_compute_and_frames_are_python() -> None:
    found = classes(sketch(ON_CPU))
    assert found["compute"] == 50_000
    assert found["compile"] == 20_000
    assert found["garbage_collection"] == 20_000
    assert found["python"] == 50_000
    assert sum(found.values()) == 160_000


@pytest.mark.parametrize("drawing", [STEPS, ON_CPU])
def test_the_rows_add_up(drawing: str) -> None:
    assert_adds_up(sketch(drawing))


@pytest.mark.traces
def test_the_rows_add_up_on_real_traces(
    real_names: list[str], real: Callable[[str], Trace]
) -> None:
    for name in real_names:
        assert_adds_up(real(name))


@pytest.mark.traces
def test_the_largest_row_of_a_job_that_communicates(real: Callable[[str], Trace]) -> None:
    row = account(real("mi300-2025-resnet-ddp-recompute")).row(0, named=True)
    assert (row["class"], row["line"]) == ("communication", 82)
    assert row["share"] > 0.5


def test_communication_has_the_name_of_the_collective() -> None:
    drawing = """
        mark 1 | ssssssssssss
        cpu 1  | bbbb
        call 1 |  kyyyyyyyyyy
        gpu 7  |   kkkkkkkkkk
        s = ProfilerStep#1
        b = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
        k = ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)
        y = cudaStreamSynchronize
    """
    row = account(sketch(drawing), by="what").row(0, named=True)
    assert (row["class"], row["what"]) == (
        "communication",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    )
    told = drawing.replace("4096ul>)", "4096ul>); collective = allreduce")
    assert account(sketch(told), by="what").row(0, named=True)["what"] == "allreduce"


def test_a_row_has_its_module_and_its_thread() -> None:
    drawing = """
        mark 1   | ssssssssss
        python 1 | mmmmmmmmmm
        cpu 1    | aaaaaa
        s = ProfilerStep#1
        m = nn.Module: Linear_0; module_id = 0
        a = aten::mm
    """
    rows = {row["class"]: row for row in account(sketch(drawing), by="what").to_dicts()}
    assert (rows["compute"]["module"], rows["compute"]["thread"]) == ("Linear", "1")
    of_device = account(sketch(STEPS), by="class").row(0, named=True)
    assert (of_device["class"], of_device["thread"]) == ("compute", "stream 7")


def test_a_step_that_is_recorded_as_an_operator_hides_no_operator() -> None:
    drawing = """
        cpu 1 | ssssssssss
        cpu 1 | aaaaaabb
        s = ProfilerStep#1
        a = aten::mm
        b = aten::add
    """
    rows = account(sketch(drawing), by="what").select("what", "per_step").rows()
    assert set(rows) == {("aten::mm", 60_000), (None, 20_000), ("aten::add", 20_000)}


HOOK = """
    column = 1 ms
    mark 1   | ssssssssssssssssssss
    python 1 | ffffffffffffffffffff
    python 1 |  bbbbbbbbbbbbbbbb
    python 1 |       hhhhhhhhh
    cpu 1    |   oooooooooooooo mm
    cpu 1    |   gg    eeee
    s = ProfilerStep#1
    f = train.py(3): main
    b = <built-in method run_backward of torch._C._EngineBase object>
    h = privacy.py(20): capture
    o = autograd::engine::evaluate_function: EmbeddingBackward0; line = net.py:9 forward
    g = aten::embedding_dense_backward; line = net.py:9 forward
    e = aten::einsum; line = privacy.py:22 capture
    m = aten::mm; line = train.py:5 main
"""


def test_a_hook_of_a_backward_pass_counts_at_its_own_lines() -> None:
    trace = sketch(HOOK)
    assert_adds_up(trace)
    rows = account(trace, by="line").select("class", "file", "line", "time").rows()
    assert set(rows) == {
        ("compute", "net.py", 9, 5_000_000),  # what is left of the operator around the hook
        ("compute", "privacy.py", 22, 4_000_000),
        ("python", "privacy.py", 20, 5_000_000),
        ("compute", "train.py", 5, 2_000_000),
        ("python", "train.py", 3, 4_000_000),
    }
    named = dict(account(trace, by="what").select("what", "time").rows())
    assert named["aten::einsum"] == 4_000_000


def test_launches_into_a_graph_that_is_captured_do_not_compute() -> None:
    drawing = """
        mark 1 | ssssssssssssss
        cpu 1  | aaaa aaaa  bbb
        call 1 |  c    l  i
        s = ProfilerStep#1
        a = aten::mm
        b = aten::view
        c = hipLaunchKernel
        l = hipExtModuleLaunchKernel
        i = hipGraphInstantiateWithFlags
    """
    assert classes(sketch(drawing)) == {
        "launch": 80_000,
        "capture": 10_000,
        "other": 20_000,
        "compute": 30_000,
    }


def test_the_capture_of_a_graph_is_neither_python_nor_launches() -> None:
    drawing = """
        mark 1   | ssssssssssssssss
        python 1 |  ffffffffffff
        cpu 1    | aaa aaa  bbb  aa
        call 1   |   g   l   m  ei
        s = ProfilerStep#1
        f = serve.py(3): forward
        a = aten::mm
        b = aten::view
        g = cudaStreamBeginCapture
        e = cudaStreamEndCapture
        i = cudaGraphInstantiate
    """
    trace = sketch(drawing)
    assert_adds_up(trace)
    assert classes(trace) == {"capture": 130_000, "compute": 30_000}
    told = advise(trace).to_dict()["account"]  # in the words that the format promises
    assert {row["class"] for row in told["rows"]} == {"compile", "compute"}
    assert told["bound_by"] == ["compile"]


def test_a_recording_that_the_device_ends_is_not_unexplained_meanwhile() -> None:
    """A whole recording as one step, as of a server that replays a graph."""
    found = classes(sketch("cpu 1 | aa\ncall 1 | kl\ngpu 7 |  kkklllllll\na = aten::mm"))
    assert found == {"launch": 10_000, "compute": 100_000}


QUEUED = """
    column = 100 us
    cpu 1  | aaa
    call 1 | klc
    gpu 7  |             kkkkkkkl
    a = aten::mm; line = serve.py:7 step
    c = cudaGetDevice
"""
"""Work that begins 1.2 ms after its launch, the first on its stream that is recorded."""


def test_work_behind_what_was_queued_before_the_recording_is_not_launching() -> None:
    trace = sketch(QUEUED)
    assert classes(trace) == {"device_wait": 1_200_000, "compute": 800_000}
    waiting = account(trace, by="line").filter(pl.col("class") == "device_wait")
    assert waiting.select("line", "time").rows() == [(None, 1_200_000)]


def test_a_first_launch_that_takes_long_itself_is_launching() -> None:
    drawing = QUEUED.replace("aaa", "a" * 12).replace("klc", "k" * 12 + "l")
    assert "device_wait" not in classes(sketch(drawing))


def test_work_that_waits_while_the_device_works_is_not_behind_unrecorded_work() -> None:
    drawing = QUEUED.replace("gpu 7", "gpu 9  | mmmmmmmmmmmm\n    gpu 7")
    assert "device_wait" not in classes(sketch(drawing))


def test_an_annotation_alone_does_not_tell_that_python_ran() -> None:
    """The backward pass runs on another thread, or in C++, while its caller waits."""
    drawing = """
        mark 1 | ssssssssss
        mark 1 | bbbbbbbbbb
        cpu 1  | aa      aa
        s = ProfilerStep#1
        b = ## backward ##
        a = aten::mm
    """
    assert classes(sketch(drawing)) == {"compute": 40_000, "other": 60_000}
    within = drawing + "        python 1 | ffffffffff\n        f = train.py(3): main\n"
    assert classes(sketch(within)) == {"compute": 40_000, "python": 60_000}


def test_operators_of_a_program_whose_device_was_not_recorded_do_not_compute() -> None:
    """Its ranks exchange what is on devices, so that its operators may only launch."""
    drawing = """
        mark 1 | nn
        cpu 1  |   aaaaaaaa
        n = {}:all_reduce
        a = aten::mm
    """
    found = classes(sketch(drawing.format("nccl")))
    assert found["launch"] == 80_000
    assert "compute" not in found
    assert classes(sketch(drawing.format("gloo")))["compute"] == 80_000
