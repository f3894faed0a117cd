from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.memory_operators import memory_operators

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
KIB = 1024

NETWORK = """
    l = aten::linear; line = net.py:12 forward
    e = aten::empty; line = net.py:12 forward
    r = aten::relu; line = net.py:13 forward
    B = b; bytes = 4096
    cpu 1    | llllll rrr
    cpu 1    |  ee
    memory 1 |  A  Ba  C  b
"""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return memory_operators(trace, **options).select(columns).rows()


def test_nothing_recorded_has_no_operators() -> None:
    for by in ("name", "line", "module"):
        assert memory_operators(Trace(), by=by).is_empty()


def test_tells_what_operators_keep_and_allocate() -> None:
    trace = sketch(NETWORK)
    increase = ("name", "self_size_increase", "size_increase")
    assert rows(trace, *increase) == [
        ("aten::linear", 3 * KIB, 4 * KIB),
        ("aten::empty", 1 * KIB, 1 * KIB),
        ("aten::relu", 1 * KIB, 1 * KIB),
        ("outside operators", -4 * KIB, -4 * KIB),
    ]
    assert rows(trace, "name", "self_allocation_size", "allocation_size", "calls") == [
        ("aten::linear", 4 * KIB, 5 * KIB, 1),
        ("aten::empty", 1 * KIB, 1 * KIB, 1),
        ("aten::relu", 1 * KIB, 1 * KIB, 1),
        ("outside operators", 0, 0, None),
    ]
    assert rows(trace, "self_allocations", "allocations") == [(1, 2), (1, 1), (1, 1), (0, 0)]


def test_within_itself_an_operator_counts_once() -> None:
    trace = sketch("""
        cpu 1    | aaaaaaaa
        cpu 1    |  bbbbbb
        cpu 1    |   aa
        memory 1 |   A
    """)

    assert rows(trace, "name", "calls", "self_allocations", "allocations") == [
        ("a", 2, 1, 1),
        ("b", 1, 0, 1),
    ]


def test_lines_hold_all_operators_of_theirs() -> None:
    columns = ("name", "file", "line", "function", "how", "self_size_increase", "size_increase")

    assert rows(sketch(NETWORK), *columns, by="line") == [
        (None, "net.py", 12, "forward", "stack", 4 * KIB, 4 * KIB),
        (None, "net.py", 13, "forward", "stack", 1 * KIB, 1 * KIB),
        ("outside operators", None, None, None, None, -4 * KIB, -4 * KIB),
    ]


def test_modules_hold_all_operators_of_theirs() -> None:
    trace = sketch("""
        n = nn.Module: Linear_0; module_id = 0
        python 1 |  nnnn
        cpu 1    |  aa   b
        memory 1 |  A    B
    """)

    assert rows(trace, "name", "module", "self_allocations", by="module") == [
        (None, "nn.Module: Linear_0", 1),
        (None, None, 1),
    ]


def test_records_between_two_instants_count_alone() -> None:
    trace = sketch("""
        cpu 1    | aaaaaaaa
        memory 1 | A B  b C
    """)
    columns = ("self_allocations", "self_size_increase", "calls")

    assert rows(trace, *columns) == [(3, 2 * KIB, 1)]
    assert rows(trace, *columns, end=20 * US) == [(2, 2 * KIB, 1)]
    assert rows(trace, *columns, start=20 * US, end=50 * US) == [(1, 0, 0)]
    with pytest.raises(UsageError, match="not after"):
        memory_operators(trace, start=20, end=20)


def test_devices_are_told_apart() -> None:
    trace = sketch("""
        A = a; device_type = 6; device = 0
        B = b; device_type = 6; device = 1
        cpu 1    | mmm
        memory 1 | ABC
    """)

    assert rows(trace, "device_type", "device", "self_allocations") == [
        ("HIP", 0, 1),
        ("HIP", 1, 1),
        ("CPU", -1, 1),
    ]
    assert rows(trace, "device", device="hip") == [(0,), (1,)]


def test_records_count_on_their_own_thread() -> None:
    trace = sketch("cpu 1 | mmm\ncpu 2 | nnn\nmemory 2 |  A\nmemory 3 |  B")

    assert rows(trace, "name", "self_allocations") == [("n", 1), ("outside operators", 1)]


def test_what_allocated_nothing_is_no_row_and_what_failed_is_no_allocation() -> None:
    trace = sketch("F = f; failed = true\ncpu 1 | mmm nnn\nmemory 1 | FA")

    assert rows(trace, "name", "self_allocations") == [("m", 1)]


lane = st.text(alphabet="abc ", min_size=1, max_size=24)
marks = st.text(alphabet="ABab ", min_size=1, max_size=24)


@given(lane, lane, marks, marks)
def test_self_sizes_sum_to_all_records(outer: str, inner: str, first: str, second: str) -> None:
    trace = sketch(
        f"A = a; device_type = 1; bytes = 4096\ncpu 1 | {outer}\ncpu 1 | {inner}\n"
        f"memory 1 | {first}\nmemory 2 | {second}"
    )
    for by in ("name", "line", "module"):
        found = memory_operators(trace, by=by)
        for kind, number in (("CPU", 0), ("CUDA", 1)):
            mine = found.filter(pl.col("device_type") == kind)
            told = trace.memory.filter(pl.col("device_type") == number)["bytes"]
            assert mine["self_size_increase"].sum() == told.sum()
            assert mine["self_allocations"].sum() == (told > 0).sum()
            assert mine["self_allocation_size"].sum() == told.filter(told > 0).sum()
            assert (mine["allocations"] >= mine["self_allocations"]).all()
            assert (mine["allocation_size"] >= mine["self_allocation_size"]).all()


def test_unknown_bytes_are_in_no_sum() -> None:
    trace = sketch("cpu 1 | mmm\nmemory 1 | AB")
    unknown = pl.when(pl.col("time") == 0).then("bytes")

    assert rows(
        replace(trace, memory=trace.memory.with_columns(bytes=unknown)), "self_allocations"
    ) == [(1,)]


def test_operators_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    table = memory_operators(real("v100-2021-resnet50-workers0.pt.trace"), device="cuda")
    golden(memory_operators, table.head(12))


def test_real_rows_sum_to_the_records(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        happened = trace.memory.filter(~pl.col("failed"))["bytes"].drop_nulls()
        for by in ("name", "line", "module"):
            found = memory_operators(trace, by=by)
            assert found["self_size_increase"].sum() == happened.sum(), (name, by)
            allocated = happened.filter(happened > 0)
            assert found["self_allocation_size"].sum() == allocated.sum(), (name, by)
            assert found["self_allocations"].sum() == allocated.len(), (name, by)
