from typing import Any

from tests.views.test_memory_peak import LEAK

from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.memory_lifetimes import memory_lifetimes

US = 1_000
KIB = 1024

TWO_LINES = """
    m = aten::mm; line = net.py:12 forward
    r = aten::relu; line = net.py:13 forward
    A = a; bytes = 2048; device_type = 1; device = 0
    B = b; bytes = 1024; device_type = 1; device = 0
    C = c; bytes = 512; device_type = 1; device = 0
    cpu 1    | mmmmm rrrrr
    memory 1 | A Cc  Ba
"""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return memory_lifetimes(trace, **options).select(columns).rows()


def test_nothing_recorded_has_no_lifetimes() -> None:
    assert memory_lifetimes(Trace()).is_empty()


def test_a_line_has_a_row_for_each_place_of_release() -> None:
    trace = sketch(TWO_LINES)

    assert rows(trace, "line", "release_line", "bytes", "alive", "median_lifetime") == [
        (12, 13, 2 * KIB, None, 70 * US),
        (13, None, 1 * KIB, 1 * KIB, None),
        (12, 12, 512, None, 10 * US),
    ]
    assert rows(trace, "operator", "release_operator", "blocks", by="operator")[0] == (
        "aten::mm",
        "aten::relu",
        1,
    )
    assert rows(trace, "bytes", start=10 * US, end=40 * US) == [(512,)]
    assert rows(trace, "bytes", end=20 * US) == [(2 * KIB,), (512,)]


def test_of_several_blocks_the_median_and_the_longest_lifetime_are_told() -> None:
    trace = sketch("""
        m = aten::mm; line = net.py:12 forward
        A = a; bytes = 512; device_type = 1; device = 0
        B = b; bytes = 512; device_type = 1; device = 0
        C = c; bytes = 512; device_type = 1; device = 0
        cpu 1    | mmmmmmmmmmmmm
        memory 1 | Aa Bb  C    c
    """)
    columns = ("blocks", "bytes", "median_lifetime", "longest_lifetime")
    assert rows(trace, *columns) == [(3, 3 * 512, 10 * US, 50 * US)]


def test_a_leak_comes_first_with_its_line() -> None:
    trace = sketch(LEAK + "    memory 1 | A  L a   B  M b   C  N c   D  O d")

    assert rows(trace, "file", "line", "growth_per_step", "alive", "release_line") == [
        ("train.py", 31, 1 * KIB, 4 * KIB, None),
        ("net.py", 12, None, None, None),
    ]
