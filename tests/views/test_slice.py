from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.slice import slice as slice_

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000


def facts(trace: Trace, name: str, group: str) -> dict[str, str]:
    table = of_name(trace, name).filter(pl.col("group") == group)
    return dict(table.select("key", "value").iter_rows())


def links(trace: Trace, name: str) -> list[tuple[str, str]]:
    table = of_name(trace, name).filter(pl.col("group") == "links")
    return table.select("key", "value").rows()


def of_name(trace: Trace, name: str) -> pl.DataFrame:
    text = trace.slices["name"].cast(pl.String)
    return slice_(trace, id=int(trace.slices.filter(text == name)["id"][0]))


def test_no_slice_has_no_rows() -> None:
    assert slice_(Trace()).is_empty()
    assert slice_(sketch("cpu 1 | aa")).is_empty()


def test_refuses_a_number_that_is_no_slice() -> None:
    for number in (-2, 1):
        with pytest.raises(UsageError, match="which is no slice"):
            slice_(sketch("cpu 1 | aa"), id=number)


def test_the_first_row_is_the_slice_and_where_it_lies() -> None:
    trace = sketch("""
        cpu 1 | aaaaaa
        cpu 1 |  bb
    """)
    row = of_name(trace, "b").row(0, named=True)

    assert (row["group"], row["key"], row["value"], row["slice"]) == ("slice", "name", "b", 1)
    assert (row["start"], row["duration"], row["track"], row["row"]) == (10 * US, 20 * US, 0, 1)


def test_times_category_and_line_of_an_operator() -> None:
    trace = sketch("""
        cpu 1 | aaaaaa
        cpu 1 |  bb
        a = aten::mm; input_shapes = [[2,3],[3,4]]; line = train.py:12 step
    """)

    told = facts(trace, "aten::mm", "slice")
    assert told["category"] == "cpu_op"
    assert (told["duration"], told["self"], told["start"]) == ("60000", "40000", "0")
    assert facts(trace, "aten::mm", "where") == {
        "file": "train.py", "line": "12", "function": "step", "how": "stack",
    }  # fmt: skip
    assert facts(trace, "aten::mm", "arguments")["input shapes"] == "[[2,3],[3,4]]"


def test_a_kernel_leads_to_its_launch_and_operator_and_back() -> None:
    trace = sketch("""
        cpu 1  | aaaa
        call 1 |  k
        gpu 7  |    kkk m
    """)
    [(kernel, call)] = trace.slices.filter(pl.col("launch").is_not_null())["id", "launch"].rows()

    def leads(number: int) -> list[tuple[Any, ...]]:
        table = slice_(trace, id=number).filter(pl.col("group") == "links")
        return table.select("key", "value", "slice").rows()

    assert leads(kernel)[:2] == [("launch", "k", call), ("operator", "a", 0)]
    assert ("next", "m", 3) in leads(kernel)
    assert leads(call)[0] == ("device work", "k", kernel)
    assert leads(0)[0] == ("device work", "k", kernel)


def test_the_device_work_of_a_slice_is_summed_however_much_it_is() -> None:
    trace = sketch("""
        cpu 1  | aaaa bb
        call 1 |  kmk  n
        gpu 7  |    kkk  k nn
        gpu 8  |     mmm
    """)

    assert facts(trace, "a", "device work") == {
        "count": "3",
        "busy": "50000",  # k and m overlap by 20 us
        "begin": "30000",
        "end": "90000",
    }
    assert facts(trace, "b", "device work")["count"] == "1"
    table = of_name(trace, "n").filter(pl.col("group") == "device work")
    assert table.height == 4  # of the call that launched it
    kernel = trace.slices.filter(pl.col("launch").is_not_null())["id"][0]
    assert "device work" not in slice_(trace, id=kernel)["group"].to_list()


def test_parent_child_and_neighbours_on_the_row() -> None:
    trace = sketch("""
        cpu 1 | aaaaaaaaa d
        cpu 1 |  b cc b
    """)

    assert links(trace, "c") == [("parent", "a"), ("previous", "b"), ("next", "b")]
    assert links(trace, "a") == [("child", "b"), ("next", "d")]


def test_slices_of_no_length_that_begin_together_lie_in_turn() -> None:
    trace = sketch("cpu 1 | a b c")
    same = trace.slices.with_columns(start=pl.lit(0), duration=pl.lit(0))
    trace = Trace(slices=same.cast(trace.slices.schema), tracks=trace.tracks)

    is_beside = pl.col("key").is_in(["previous", "next"])
    beside = [slice_(trace, id=n).filter(is_beside)["slice"].to_list() for n in range(3)]
    assert beside == [[1], [0, 2], [1]]


def test_forward_and_backward() -> None:
    trace = sketch("""
        cpu 1 | fff
        cpu 2 |      bbb
        b = bwd; forward = f
    """)

    assert ("backward", "bwd") in links(trace, "f")
    assert ("forward", "f") in links(trace, "bwd")


def test_what_a_call_waits_for() -> None:
    trace = sketch("""
        call 1 | k  sssssss
        gpu 7  |   kkkkkk
        s = cudaDeviceSynchronize
    """)

    assert ("waits for", "k") in links(trace, "cudaDeviceSynchronize")
    kernel = trace.slices.filter(pl.col("category").cast(pl.String) == "kernel")["id"][0]
    led = slice_(trace, id=kernel).filter(pl.col("key") == "ends the wait of")
    assert led["value"].to_list() == ["cudaDeviceSynchronize"]


def test_how_a_kernel_was_launched() -> None:
    trace = sketch("""
        gpu 7 | kk
        k = gemm; grid = [4,2,1]; block = [128,1,1]; registers = 40; shared_memory = 1024
    """)

    told = facts(trace, "gemm", "launch")
    assert told == {
        "grid": "4,2,1", "block": "128,1,1", "registers": "40", "shared memory": "1024",
    }  # fmt: skip


def test_what_a_copy_moved() -> None:
    trace = sketch("""
        copy 7 | cc
        c = Memcpy HtoD (Pageable -> Device); bytes = 4096; bandwidth = 1.5
    """)

    assert facts(trace, "Memcpy HtoD (Pageable -> Device)", "copy") == {
        "bytes": "4096", "bandwidth": "1.5",
    }  # fmt: skip


def test_units_are_those_of_columns() -> None:
    trace = sketch("copy 7 | cc\nc = m; bytes = 4096")
    units = dict(of_name(trace, "m").select("key", "unit").iter_rows())

    assert (units["duration"], units["start"], units["bytes"]) == ("ns", "instant", "bytes")


@pytest.mark.traces
def test_the_slice_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    trace = real("h100-2025-vit")
    kernel = trace.slices.filter(pl.col("launch").is_not_null())["id"][10]

    golden(slice_, slice_(trace, id=kernel))
