"""The table of copies and fills."""

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.copies import copies

if TYPE_CHECKING:
    from tests.views.conftest import Golden, ReadReal

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


def test_rows_are_what_is_asked() -> None:
    trace = sketch(LOADING)
    assert rows(trace, "operator", "count", by="operator") == [
        ("aten::to", 2),
        ("aten::item", 1),
        ("aten::to", 1),
        ("aten::item", 1),
    ]
    assert rows(trace, "line", "time", by="line") == [
        (7, 40 * US),
        (9, 20 * US),
        (7, 10 * US),
        (9, 10 * US),
    ]
    assert rows(trace, "size", "count", by="size", top=1) == [(40_000, 2)]
    assert rows(trace, "start", "direction", by="copy", top=2) == [
        (20 * US, "HtoD"),
        (80 * US, "HtoD"),
    ]
    with pytest.raises(UsageError, match="`top` is `-2`"):
        copies(trace, top=-2)


def test_bytes_that_are_not_told_are_unknown() -> None:
    trace = sketch("""
        a = CopyHostToDevice; bytes = 10000
        b = CopyHostToDevice
        copy 1 | a bbb
    """)
    columns = ("direction", "count", "bytes", "untold", "bandwidth", "max_bytes")
    assert rows(trace, *columns) == [("HtoD", 2, None, 1, 1.0, 10_000)]


def test_a_name_that_tells_no_direction_is_unknown() -> None:
    assert rows(sketch("a = mystery; bytes = 8\ncopy 1 | a"), "direction", "bytes") == [(None, 8)]


@given(st.lists(st.text("xyz ", max_size=30), min_size=1, max_size=3))
def test_rows_add_up_to_all_copies(drawn: list[str]) -> None:
    legend = "x = Memcpy HtoD; bytes = 8\ny = Memcpy DtoD; bytes = 16\nz = Memcpy PtoP\n"
    trace = sketch(legend + "\n".join(f"copy {n} | {lane}" for n, lane in enumerate(drawn)))
    for by in ("direction", "operator", "line", "size", "stream", "copy"):
        table = copies(trace, by=by)
        assert table["time"].sum() == trace.slices["duration"].sum()
        assert table["count"].sum() == trace.slices.height


def test_every_copy_of_every_real_trace_is_counted(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        work = trace.slices.join(trace.device_args.select("id", "bytes"), on="id")
        found = work.filter(pl.col("category").cast(pl.String).str.starts_with("gpu_mem"))
        table = copies(trace)
        assert table["direction"].null_count() == 0, name
        assert table["count"].sum() == found.height, name
        assert table["time"].sum() == found["duration"].sum(), name
        assert table["untold"].sum() == found["bytes"].null_count(), name


def test_copies_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(copies, copies(real("v100-2021-resnet50-workers4.pt.trace"), by="line", top=12))
