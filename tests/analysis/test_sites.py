"""The source line behind any slice."""

from dataclasses import replace
from typing import Any

import polars as pl

from selftime.analysis.source_sites import source_sites_of_slices
from selftime.testing import sketch
from selftime.trace import Trace

DRAWING = """
    m = train.py(3): main
    s = net.py(20): step
    t = torch/nn/functional.py(99): linear
    a = aten::linear; line = net.py:24 step
    b = aten::mm
    c = cudaDeviceSynchronize
    k = gemm
    python 1 | mmmmmmmmmmmm
    python 1 |  sssssss
    python 1 |  tttt
    cpu 1    |   aaa
    cpu 1    |   bb
    call 1   |   k       c
    gpu 7    |    kkkk
"""


def told(trace: Trace) -> dict[tuple[str, str], tuple[str | None, int | None, str | None]]:
    slices = trace.slices.select(pl.col("category", "name").cast(pl.String)).rows()
    found = source_sites_of_slices(trace, trace.slices["id"]).select("file", "line", "how").rows()
    return dict(zip(slices, found, strict=True))


def test_a_slice_has_the_line_of_the_innermost_around_it_that_has_one() -> None:
    found = told(sketch(DRAWING))
    assert found["cpu_op", "aten::linear"] == ("net.py", 24, "stack")
    assert found["cpu_op", "aten::mm"] == ("net.py", 24, "stack")
    assert found["cuda_runtime", "gemm"] == ("net.py", 24, "stack")


def test_device_work_has_the_line_of_what_launched_it() -> None:
    assert told(sketch(DRAWING))["kernel", "gemm"] == ("net.py", 24, "stack")


def test_where_no_operator_tells_the_users_innermost_function_does() -> None:
    found = told(sketch(DRAWING))
    assert found["cuda_runtime", "cudaDeviceSynchronize"] == ("train.py", 3, "definition")
    library = "python_function", "torch/nn/functional.py(99): linear"
    assert found[library] == ("net.py", 20, "definition")


def test_a_frame_that_ran_before_the_recording_has_no_line() -> None:
    """PyTorch names it by the line that it was at, not by that of its definition."""
    drawing = """
        mark 1   |  uuuuuuuu
        python 1 | mmmmmmmmmm
        python 1 |   ss ss
        call 1   |        c
        u = ProfilerStep#1
        m = train.py({line}): main
        s = train.py({called}): step
        c = cudaDeviceSynchronize
    """
    call = "cuda_runtime", "cudaDeviceSynchronize"
    found = told(sketch(drawing.format(line=80, called=20)))
    assert found[call] == ("train.py", None, "definition")
    assert found["python_function", "train.py(20): step"] == ("train.py", 20, "definition")
    later = drawing.replace("python 1 | mmmmmmmmmm", "python 1 |  mmmmmmmmm")
    assert told(sketch(later.format(line=80, called=20)))[call] == ("train.py", 80, "definition")


def test_a_library_beside_the_script_is_the_users() -> None:
    drawing = """
        m = train.py(3): main
        r = torchmetrics/rank.py(35): rank
        k = kornia/filters.py(9): blur
        a = aten::sort; line = {folder}/torchmetrics/metric.py:24 update
        python 1 | mmmmmmmmmmmm
        python 1 |   rrr
        python 1 |        kkk
        cpu 1    | a
    """
    ranked, blurred = (
        ("python_function", name)
        for name in ("torchmetrics/rank.py(35): rank", "kornia/filters.py(9): blur")
    )
    installed = "/venv/lib/python3.12/site-packages"
    facts = {"selftime": {"paths": ["/job", "/job/src", installed]}}
    beside = told(sketch(drawing.format(folder="/job/src"), metadata=facts))
    assert beside[ranked] == ("torchmetrics/rank.py", 35, "definition")
    assert beside[blurred] == ("train.py", 3, "definition")
    elsewhere = told(sketch(drawing.format(folder=installed), metadata=facts))
    assert elsewhere[ranked] == ("train.py", 3, "definition")


def test_what_is_not_known_is_null() -> None:
    trace = sketch("cpu 1 | a\ngpu 7 | k")
    assert source_sites_of_slices(trace, trace.slices["id"])["file"].null_count() == 2
    nothing = source_sites_of_slices(trace, pl.Series([None, 1], dtype=pl.UInt32))
    assert nothing.rows() == [(None, None, None, None)] * 2
    assert source_sites_of_slices(Trace(), pl.Series([], dtype=pl.UInt32)).is_empty()


def test_a_line_that_calls_and_marks_tell_is_one_line() -> None:
    trace = sketch("""
        a = aten::sum; line = net.py:24 step
        b = aten::add; line = net.py:24 step
        c = aten::mul; line = net.py:25 step
        cpu 1 | aa bb cc
    """)
    marked = pl.Series("how", ["stack", "stamp", "stamp"], dtype=pl.Categorical())
    trace = replace(trace, lines=trace.lines.with_columns(marked))

    assert source_sites_of_slices(trace, trace.slices["id"])["how"].to_list() == [
        "stack",
        "stack",
        "stamp",
    ]


def test_a_collective_on_a_thread_of_its_backend_has_the_line_of_what_issued_it() -> None:
    """The first one was issued before the recording; broadcasts and all-reduces queue apart."""
    drawing = """
        mark 1 | ssssssssssssssssssss
        cpu 1  |  aa  iij bb  h
        mark 5 | g      gggg  gg
        mark 6 |         rr
        s = ProfilerStep#1
        a = aten::mm; line = train.py:3 main
        b = aten::mm; line = train.py:4 main
        i = c10d::allreduce_; line = train.py:7 main
        j = c10d::broadcast_; line = train.py:8 main
        h = c10d::allreduce_; line = train.py:9 main
        g = gloo:all_reduce
        r = gloo:broadcast
    """
    trace = sketch(drawing)
    found = trace.slices.select(pl.col("name").cast(pl.String), "start").hstack(
        source_sites_of_slices(trace, trace.slices["id"])
    )
    runs = found.filter(pl.col("name").str.starts_with("gloo")).sort("start")
    assert runs["line"].to_list() == [None, 7, 8, 9]


CALLS = """
    m = train.py(3): main
    f = <built-in function sleep>
    t = torch/nn/functional.py(99): linear
    o = <built-in method wait of Work object at 0x7f23a6fa9e30>
    u = <built-in function unknown>
    python 1 | mmmmmmmmmmmmmmmmmm
    python 1 |  ff  tttttt oo uu
    python 1 |      ff
"""


def test_a_call_of_c_or_of_a_library_has_the_line_that_made_it() -> None:
    names = [
        "train.py(3): main",
        "<built-in function sleep>",
        "<built-in method wait of Work object>",
    ]
    calls: dict[str, Any] = {"names": [*names, "torch/nn/functional.py(99): linear"]}
    calls |= {"caller": [0, 0, 0], "called": [1, 2, 3], "line": [5, 7, 9]}
    trace = replace(sketch(CALLS), metadata={"selftime": {"calls": calls}})
    slices = trace.slices.select("start", pl.col("name").cast(pl.String)).rows()
    sites = source_sites_of_slices(trace, trace.slices["id"])
    found = {
        (start, name[:20]): (line, how)
        for (start, name), (line, how) in zip(
            slices, sites.select("line", "how").rows(), strict=True
        )
    }
    assert set(sites["file"].to_list()) == {"train.py"}
    assert found[10_000, "<built-in function s"] == (5, "stack")
    assert found[120_000, "<built-in method wai"] == (7, "stack")
    assert found[50_000, "torch/nn/functional."] == (9, "stack")
    assert found[50_000, "<built-in function s"] == (9, "stack")
    assert found[150_000, "<built-in function u"] == (3, "definition")
    assert found[0, "train.py(3): main"] == (3, "definition")


def test_lines_of_calls_that_are_damaged_are_none() -> None:
    damaged: tuple[Any, ...] = (
        [],
        {"names": 3},
        {"names": ["a"], "caller": [0], "called": [7], "line": [1]},
        {"names": ["a", "b"], "caller": [-1], "called": [1], "line": [1]},
        {"names": ["a", "b"], "caller": [0], "called": [1], "line": [1 << 40]},
        {"names": ["a", "b"], "caller": [0], "called": [1]},
        {"names": ["a", "b"], "caller": [0], "called": [1], "line": [True]},
    )
    for calls in damaged:
        trace = replace(sketch(CALLS), metadata={"selftime": {"calls": calls}})
        found = source_sites_of_slices(trace, trace.slices["id"])
        assert set(found["how"].to_list()) == {"definition"}
