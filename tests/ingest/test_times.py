"""Times from any text equal decimal arithmetic, to the nanosecond and to the end of 63 bits."""

import math
from decimal import ROUND_HALF_EVEN, Decimal, getcontext, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.times.nanosecond_conversion import MAX_EXACT_DOUBLE_US, to_nanoseconds

MOST = 2**63 - 1

whole_ns = st.integers(-MOST, MOST)


def exact(text: str) -> int:
    """Microseconds as text in ns, by the slow and sure way."""
    with localcontext(getcontext()) as context:
        context.prec = 60
        found = int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))
    return found if abs(found) <= MOST else NO_INT


def microseconds(ns: int, decimals: int = 3) -> str:
    sign, ns = "-" if ns < 0 else "", abs(ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03}"[: None if decimals == 3 else -1]


def of(*texts: str) -> list[int]:
    return list(map(int, to_nanoseconds([text.encode() for text in texts])))


def test_nothing() -> None:
    assert to_nanoseconds([]).tolist() == []


@given(st.lists(whole_ns, min_size=1, max_size=8))
def test_three_decimals_of_any_size(times: list[int]) -> None:
    assert of(*map(microseconds, times)) == times


@given(st.lists(st.integers(0, MOST), min_size=1, max_size=8), st.integers(0, 3))
def test_fewer_decimals(times: list[int], decimals: int) -> None:
    texts = [f"{ns // 1000}.{ns % 1000:03}"[: -(3 - decimals) or None] for ns in times]
    texts = [text.removesuffix(".") for text in texts]
    assert of(*texts) == [exact(text) for text in texts]


@given(st.lists(st.decimals(-(10**17), 10**17, allow_nan=False), min_size=1, max_size=8))
def test_decimals_in_any_form(values: list[Decimal]) -> None:
    texts = [str(value) for value in values] + [f"{value:e}" for value in values]
    assert of(*texts) == [exact(text) for text in texts]


@given(whole_ns, st.integers(-20, 20))
def test_exponents(digits: int, exponent: int) -> None:
    texts = [f"{digits}e{exponent}", f"{digits}E{exponent:+03}", f'"{digits}e{exponent}"']
    assert of(*texts) == [exact(f"{digits}e{exponent}")] * 3


@given(st.integers(-int(MAX_EXACT_DOUBLE_US) * 1000 + 1, int(MAX_EXACT_DOUBLE_US) * 1000 - 1))
def test_doubles_of_three_decimals_are_exact_below_the_limit(ns: int) -> None:
    assert to_nanoseconds([float(microseconds(ns))]).tolist() == [ns]


@given(st.floats(-1e13, 1e13))
def test_doubles_of_any_kind_are_right_to_a_nanosecond(value: float) -> None:
    [found] = to_nanoseconds([value]).tolist()
    assert abs(found - exact(repr(value))) <= 1


@given(st.floats())
def test_no_double_fails(value: float) -> None:
    [found] = to_nanoseconds([value]).tolist()
    if math.isfinite(value) and abs(exact(repr(value))) < MOST - 1024:
        assert abs(found - exact(repr(value))) <= 1 + abs(value) * 1e-12
    else:
        assert found == NO_INT


@given(st.text(max_size=12) | st.from_regex(r"[-+.0-9eE_xNan]{1,12}", fullmatch=True))
def test_no_text_fails(text: str) -> None:
    [found] = to_nanoseconds([text.encode("utf-8", "replace")]).tolist()
    assert -(2**63) <= found <= MOST


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "nan", "-inf", "Infinity", "true", '"soon"', "[1]", "12,5", "1e99"),
        *("1e999999999", "9223372036854775.808", "-9223372036854775.809", "1.2.3", ".", "-"),
        "\u0661",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert of(text) == [NO_INT]
    assert of("1.001", text, "2") == [1001, NO_INT, 2000]


def test_the_last_times() -> None:
    assert of("9223372036854775.807", "-9223372036854775.807") == [MOST, -MOST]
    assert of("9223372036854775", "9222999999999999.999") == [
        9223372036854775000,
        9222999999999999999,
    ]


def test_times_as_strings() -> None:
    assert of('"1712217600000000.123"', '" 5.5 "') == [1712217600000000123, 5500]
