from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.memory_curve import memory_curve
from selftime.views.memory_holders import memory_holders

if TYPE_CHECKING:
    from tests.conftest import ReadReal

US = 1_000
KIB = 1024

TWO_OPERATORS = """
    m = aten::mm; line = net.py:12 forward
    r = aten::relu; line = net.py:13 forward
    A = a; bytes = 2048; device_type = 1; device = 0
    B = b; bytes = 1024; device_type = 1; device = 0
    C = c; bytes = 512; device_type = 1; device = 0
    D = d; bytes = 512; device_type = 1; device = 0
    cpu 1    | mmmmm rrrrr
    memory 1 | ACc   B adD b
"""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return memory_holders(trace, **options).select(columns).rows()


def added_up(holders: pl.DataFrame, times: Iterable[int]) -> list[int]:
    """The bytes of all groups at some instants."""
    groups = holders.partition_by("group", "device_type", "device", maintain_order=True)
    return [
        sum(int(group.filter(pl.col("time") <= time)["bytes"].tail(1).sum()) for group in groups)
        for time in times
    ]


def test_nothing_recorded_has_no_holder() -> None:
    assert memory_holders(Trace()).is_empty()


def test_a_group_has_a_row_where_its_bytes_change() -> None:
    trace = sketch(TWO_OPERATORS)

    assert rows(trace, "group", "line", "time", "bytes", by="line", points=10_000) == [
        (0, 12, 0, 2 * KIB),
        (0, 12, 10 * US, 2 * KIB + 512),
        (0, 12, 20 * US, 2 * KIB),
        (0, 12, 80 * US, 0),
        (1, 13, 60 * US, 1 * KIB),
        (1, 13, 100 * US, 1 * KIB + 512),
        (1, 13, 120 * US, 512),
        (2, None, 90 * US, -512),
    ]


def test_small_groups_are_the_others() -> None:
    trace = sketch(TWO_OPERATORS)

    assert (
        rows(trace, "group", "holder", "operator", by="operator", groups=1)[-1][1] == "unaccounted"
    )
    assert set(rows(trace, "group", "holder", "operator", by="operator", groups=1)) == {
        (0, "group", "aten::mm"),
        (1, "others", None),
        (2, "unaccounted", None),
    }
    assert set(rows(trace, "group", "holder", "operator", by="operator", groups=0)) == {
        (0, "group", "aten::mm"),
        (1, "group", "aten::relu"),
        (2, "unaccounted", None),
    }


def test_memory_from_before_is_a_group() -> None:
    trace = sketch("""
        A = a; device_type = 1
        B = b; device_type = 1
        memory 1 | A a b
    """)
    more = replace(trace, memory=trace.memory.with_columns(pl.col("allocated") + 3 * KIB))

    assert rows(more, "holder", "category", "time", "bytes") == [
        ("group", "unknown", 0, 1 * KIB),
        ("group", "unknown", 20 * US, 0),
        ("before the recording", "before the recording", 0, 3 * KIB),
        ("before the recording", "before the recording", 40 * US, 2 * KIB),
    ]


def test_a_stretch_begins_with_what_it_finds() -> None:
    trace = sketch(TWO_OPERATORS)
    window: dict[str, Any] = {"start": 30 * US, "end": 70 * US}

    assert rows(trace, "line", "time", "bytes", by="line", **window) == [
        (12, 30 * US, 2 * KIB),
        (13, 60 * US, 1 * KIB),
    ]
    curve = memory_curve(trace, **window).select("time", "allocated").rows()
    assert curve == [(30 * US, 2 * KIB), (60 * US, 3 * KIB)]


@pytest.mark.traces
@pytest.mark.parametrize("by", ["category", "line", "module", "operator", "category+line"])
@pytest.mark.parametrize("points", [16, 1000])
def test_the_groups_add_up_to_the_curve(real: "ReadReal", by: str, points: int) -> None:
    trace = real("h100-2025-vit")
    curve = memory_curve(trace, points=points, device="cuda").unique("time", keep="last")

    holders = memory_holders(trace, by=by, points=points, device="cuda", groups=2)

    assert added_up(holders, curve["time"]) == curve["allocated"].to_list()
