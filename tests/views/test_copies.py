"""The table of copies and fills."""

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.idle.host_waits import host_waits
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.copies import copies

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000

LOADING = """
    u = Memcpy HtoD (Pageable -> Device); bytes = 40000
    p = Memcpy HtoD (Pinned -> Device); bytes = 20000
    d = Memcpy DtoH (Device -> Pageable); bytes = 4
    f = Memset (Device); bytes = 1000
    t = aten::to; line = train.py:7 main
    i = aten::item; line = train.py:9 main
    cpu 1   | ttttttttt  iiii
    call 1  | uuuu p u    d f
    copy 7  |   uu p  uu   d
    fill 7  |                ff
    gpu 7   |          kkk
"""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return copies(trace, **options).select(columns).rows()


def test_nothing_copied() -> None:
    assert copies(Trace()).is_empty()
    assert copies(sketch("gpu 7 | kk")).is_empty()


def test_tells_how_much_went_where_and_how_fast() -> None:
    columns = ("direction", "host_memory", "count", "bytes", "time", "bandwidth", "host_time")
    assert rows(sketch(LOADING), *columns) == [
        ("HtoD", "pageable", 2, 80_000, 40 * US, 2.0, 50 * US),
        ("fill", None, 1, 1_000, 20 * US, 0.05, 10 * US),
        ("HtoD", "pinned", 1, 20_000, 10 * US, 2.0, 10 * US),
        ("DtoH", "pageable", 1, 4, 10 * US, 0.0004, 10 * US),
    ]


def test_tells_who_asked_where_all_agree() -> None:
    assert rows(sketch(LOADING), "direction", "operator", "file", "line", "how")[0] == (
        "HtoD",
        "aten::to",
        "train.py",
        7,
        "stack",
    )


def test_tells_how_long_the_host_was_held() -> None:
    trace = sketch("""
        u = Memcpy HtoD (Pageable -> Device)
        p = Memcpy HtoD (Pinned -> Device)
        d = Memcpy DtoH (Device -> Pageable)
        e = Memcpy DtoH (Device -> Pinned)
        s = cudaStreamSynchronize
        i = aten::item
        cpu 1  |           iiiiiiii
        call 1 | uu p dddd ess    s
        copy 7 |   uu p d   ee
    """)
    assert rows(trace, "direction", "host_memory", "host_time", "waited") == [
        ("HtoD", "pageable", 20 * US, 20 * US),
        ("DtoH", "pinned", 10 * US, 20 * US),  # its operator synchronised for it, once
        ("HtoD", "pinned", 10 * US, 0),
        ("DtoH", "pageable", 40 * US, 40 * US),
    ]


def test_rows_are_what_is_asked() -> None:
    trace = sketch(LOADING)
    assert rows(trace, "operator", "direction", "count", by="operator") == [
        ("aten::to", "HtoD", 2),
        ("aten::item", "fill", 1),
        ("aten::to", "HtoD", 1),
        ("aten::item", "DtoH", 1),
    ]
    assert rows(trace, "line", "time", by="line", top=2) == [(7, 40 * US), (9, 20 * US)]
    assert rows(trace, "start", "direction", by="copy", top=2) == [
        (20 * US, "HtoD"),
        (80 * US, "HtoD"),
    ]
    with pytest.raises(UsageError, match="`top` is `-2`"):
        copies(trace, top=-2)


def test_sizes_are_sorted_by_powers_of_16() -> None:
    trace = sketch("""
        a = Memcpy DtoD; bytes = 0
        b = Memcpy DtoD; bytes = 15
        c = Memcpy DtoD; bytes = 16
        d = Memcpy DtoD; bytes = 255
        e = Memcpy DtoD; bytes = 4503599627370496
        f = Memcpy DtoD
        copy 1 | aaaaaa bbbbb cc dd eee ff
    """)
    assert rows(trace, "at_least", "count", "smallest", "largest", "without_bytes", by="size") == [
        (0, 1, 0, 0, 0),
        (1, 1, 15, 15, 0),
        (16, 2, 16, 255, 0),
        (16**13, 1, 16**13, 16**13, 0),
        (None, 1, None, None, 1),
    ]


def test_streams_and_devices_are_told_apart() -> None:
    trace = sketch("a = Memcpy DtoD\ncopy 7 | aa\ncopy 8 |  a\ncopy 1.7 |     aaaa")
    assert rows(trace, "device", "stream", "count") == [(1, 7, 1), (0, None, 2)]
    assert rows(trace, "device", "stream", by="stream") == [(1, 7), (0, 7), (0, 8)]


def test_bytes_that_are_not_told_are_in_no_rate() -> None:
    trace = sketch("""
        a = CopyHostToDevice; bytes = 10000
        b = CopyHostToDevice
        copy 1 | a bbb
    """)
    columns = ("direction", "count", "bytes", "without_bytes", "bandwidth", "largest")
    assert rows(trace, *columns) == [("HtoD", 2, 10_000, 1, 1.0, 10_000)]
    alone = sketch("b = CopyHostToDevice\ncopy 1 | b")
    assert rows(alone, *columns) == [("HtoD", 1, None, 1, None, None)]


def test_the_recorder_tells_the_direction_where_the_name_does_not() -> None:
    trace = sketch("a = mystery; kind = DtoH\nb = mystery\ncopy 1 | aa b")
    assert rows(trace, "direction") == [("DtoH",), (None,)]


def test_the_call_of_a_graph_is_no_copys_own() -> None:
    trace = sketch("""
        g = cudaGraphLaunch
        a = Memcpy DtoD; launched_by = g
        b = Memset (Device); launched_by = g
        call 1 | ggg
        copy 7 |   aa
        fill 7 |     b
    """)
    assert rows(trace, "direction", "host_time") == [("DtoD", None), ("fill", None)]


def test_a_graph_of_kernels_and_one_copy_is_no_copys_own() -> None:
    trace = sketch("""
        g = cudaGraphLaunch
        a = Memcpy DtoD; launched_by = g
        k = gemm; launched_by = g
        call 1 | ggg
        copy 7 |   aa
        gpu 7  |     k
    """)
    assert rows(trace, "host_time") == [(None,)]


def test_keeps_what_counted_steps_launched() -> None:
    trace = sketch("""
        1 = ProfilerStep#1
        2 = ProfilerStep#2
        3 = ProfilerStep#3
        a = Memcpy DtoD
        mark 1 | 111112222233333
        call 1 |  a    a    a
        copy 7 |     a   aa   aaa
    """)
    assert rows(trace, "count", "time") == [(3, 60 * US)]
    assert rows(trace, "count", "time", counted=True) == [(2, 50 * US)]


@given(st.lists(st.text("xyz ", max_size=30), min_size=1, max_size=3))
def test_rows_add_up_to_all_copies(drawn: list[str]) -> None:
    legend = "x = Memcpy HtoD; bytes = 8\ny = Memcpy DtoD; bytes = 16\nz = Memcpy PtoP\n"
    trace = sketch(legend + "\n".join(f"copy {n} | {lane}" for n, lane in enumerate(drawn)))
    for by in ("direction", "operator", "line", "size", "stream", "copy"):
        table = copies(trace, by=by)
        assert table["time"].sum() == trace.slices["duration"].sum()
        assert table["count"].sum() == trace.slices.height
        assert table["bytes"].sum() == (trace.device_args["bytes"].sum() or 0)
        assert table.is_empty() or table["share"].sum() == pytest.approx(1)


@pytest.mark.traces
def test_every_copy_of_every_real_trace_is_counted(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        work = trace.slices.join(trace.device_args.select("id", "bytes"), on="id")
        found = work.filter(pl.col("category").cast(pl.String).str.starts_with("gpu_mem"))
        table = copies(trace)
        assert table["direction"].null_count() == 0, name
        assert table["count"].sum() == found.height, name
        assert table["time"].sum() == found["duration"].sum(), name
        assert table["without_bytes"].sum() == found["bytes"].null_count(), name
        assert table["bytes"].sum() == found["bytes"].sum(), name


@pytest.mark.traces
def test_every_wait_for_a_copy_is_for_one(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        held = host_waits(real(name)).filter(pl.col("kind").str.starts_with("copy_to"))
        assert copies(real(name))["waited"].sum() == held["wait"].sum(), name


@pytest.mark.traces
def test_bandwidth_is_that_of_the_recorder(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        written = trace.device_args.select("id", "bandwidth").drop_nulls()
        both = copies(trace, by="copy").join(written, left_on="longest", right_on="id")
        timed = both["bytes"] / both["bandwidth_right"]  # old recorders round times to 1 us
        assert ((timed - both["time"]).abs() <= 1.001 * US).all(), name


@pytest.mark.traces
def test_copies_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(copies, copies(real("v100-2021-resnet50-workers4.pt.trace"), by="line", top=12))


@pytest.mark.traces
def test_copies_of_a_trace_that_pins_memory(real: "ReadReal", golden: "Golden") -> None:
    golden(copies, copies(real("a100-2022-sampled-rank0")))
