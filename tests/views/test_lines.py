import polars as pl

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.lines import lines

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
