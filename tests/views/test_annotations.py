import polars as pl

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.annotations import annotations

OPTIMIZER = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 1 |     oooo      pppp
    cpu 1  | aaaa bb  aaaa bb
    call 1 | k         l
    gpu 7  | kkkkkk    llllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    o = Optimizer.step#SGD.step; line = train.py:9 main
    p = Optimizer.step#SGD.step; line = train.py:9 main
"""


def test_a_trace_without_annotations_has_no_row() -> None:
    assert annotations(Trace()).is_empty()
    assert annotations(sketch("cpu 1 | aa")).is_empty()


def test_a_region_has_its_time_in_a_step_and_what_of_it_is_exposed() -> None:
    """Four milliseconds, two of them after the device's work has ended."""
    table = annotations(sketch(OPTIMIZER))
    columns = ["name", "file", "line", "count", "count_per_step", "host_time", "exposed_time"]
    assert table.select(columns).rows() == [
        ("Optimizer.step#SGD.step", "train.py", 9, 2, 1.0, 4e6, 2e6)
    ]
    assert table["operators"].to_list() == [1.0]


def test_without_device_work_all_of_it_is_exposed() -> None:
    lanes = [line for line in OPTIMIZER.splitlines() if "gpu" not in line and "call" not in line]
    [row] = annotations(sketch("\n".join(lanes))).iter_rows(named=True)
    assert row["exposed_time"] == row["host_time"] == 4e6


def test_what_lies_outside_the_steps_does_not_count() -> None:
    outside = OPTIMIZER.replace("pppp", "pppp  qqqq") + "    q = Optimizer.step#SGD.step\n"
    table = annotations(sketch(outside))
    assert table.filter(pl.col("line") == 9)["count"].to_list() == [2]
    assert table.height == 1


def test_it_tells_how_a_region_varies_over_the_steps() -> None:
    """The first step is left out; the others take 10, 20 and 60 us: 10 around the middle one."""
    table = annotations(
        sketch("""
            mark 1 | ssssssssttttttttuuuuuuuuvvvvvvvv
            mark 1 | a       a       bb      cccccc
            s = ProfilerStep#1
            t = ProfilerStep#2
            u = ProfilerStep#3
            v = ProfilerStep#4
            a = data
            b = data
            c = data
        """)
    )
    assert table.select("count", "exposed_time", "deviation").rows() == [(3, 30_000.0, 10_000.0)]


def test_the_name_of_the_release_before_is_understood() -> None:
    trace = sketch(
        """
        mark 1 | aaaa
        cpu 1  | bb
        """
    )
    assert trace.view("regions").equals(trace.view("annotations"))
    assert trace.sql("select name from regions")["name"].to_list() == ["a"]
