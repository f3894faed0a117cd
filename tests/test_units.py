"""Quantities as text say what they are, to the digits that are shown."""

import json
import re
from pathlib import Path
from typing import Final, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from selftime import units

TIMES: Final = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}
BYTES: Final = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
COUNTS: Final = {"": 1, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
GOLDEN: Final = Path(__file__).parent / "golden" / "units.json"
"""Quantities and their texts; the page's tests hold units.ts to the same file."""


def parsed(text: str, sizes: dict[str, int]) -> tuple[float, int]:
    """The number that a text means, and the size of its unit."""
    found = re.fullmatch(r"(-?[\d,]+(?:\.\d+)?) ?(\w*)", text)
    assert found, text
    return float(found[1].replace(",", "")) * sizes[found[2]], sizes[found[2]]


@given(st.integers(-(2**63), 2**63))
def test_times(value: int) -> None:
    number, size = parsed(units.time_text(value), TIMES)
    assert abs(number - value) <= abs(value) * 0.00501
    assert abs(value) >= 0.9995 * size or not value
    assert abs(value) < 1000 * size or size == 10**9


def test_of_a_range_only_a_plain_unit_is_written_once() -> None:
    assert units.range_text("3 min 12 s", "4 min 12 s") == "3 min 12 s to 4 min 12 s"
    assert units.range_text("12 s", "4 min 30 s") == "12 s to 4 min 30 s"


@given(st.integers(-(2**63), 2**63))
def test_instants(value: int) -> None:
    number, size = parsed(units.instant_text(value), TIMES)
    assert abs(number - value) <= size * 0.000501 + abs(value) * 1e-12
    assert size == (10**9 if abs(value) >= 10**10 else 10**6)


@given(st.floats(-(2**63), 2**63))
def test_only_nothing_is_written_as_nothing(value: float) -> None:
    texts = [units.time_text(value), units.three_digits_text(value)]
    texts += [units.share_text(value), units.rate_text(value, "B")]
    for text in texts:
        assert (value == 0) == (re.fullmatch(r"0(\.0)?\D*", text) is not None), text


@given(st.integers(-(2**63), 2**63))
def test_bytes(value: int) -> None:
    number, size = parsed(units.bytes_text(value), BYTES)
    assert abs(number - value) <= max(abs(value) * 0.00501, 0.5)
    assert abs(value) < 1024 * size or size == 2**40


@given(st.integers(-(10**20), 10**20))
def test_counts(value: int) -> None:
    number, _ = parsed(units.count_text(value), COUNTS)
    assert abs(number - value) <= abs(value) * 0.00501


@given(st.floats(-10, 10))
def test_shares(value: float) -> None:
    text = units.share_text(value)
    assert text.endswith(" %")
    assert abs(float(text[:-2].strip("<>")) / 100 - value) <= 0.001


@given(st.floats(0, 1.1))
@example(0.0004)
@example(0.9996)
@example(1.0)
def test_only_nothing_and_all_are_written_so(value: float) -> None:
    for text in (units.share_text(value), units.whole_percent_text(value)):
        assert (text in {"0 %", "0.0 %"}) == (value == 0), text
        assert text not in {"100 %", "100.0 %"} or value > 1 - 1e-11, text


@pytest.mark.parametrize("unit", units.UNITS)
def test_every_unit_writes_every_kind_of_value(unit: units.Unit) -> None:
    for value in (None, True, 0, -1, 2**62, 0.5):
        assert units.value_text(value, unit)
    assert units.value_text(None, unit) == units.value_text(None, "ns") != units.value_text(0, unit)


def test_every_unit_is_listed() -> None:
    assert get_args(units.Unit) == units.UNITS


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (999, "ns", "999 ns"),
        (1000, "instant", "0.001 ms"),
        (1023, "bytes", "1,023 B"),
        (1024, "bytes", "1.00 KiB"),
        (12.3, "percent", "12.3 %"),
        (0.123, "ratio", "12.3 %"),
        (1_000_000, "count", "1.00 M"),
        (2039.26, "gb/s", "2,039 GB/s"),
        (False, "flag", "no"),
        ("aten::mm", "name", "aten::mm"),
    ],
)
def test_examples(value: object, unit: units.Unit, text: str) -> None:
    assert units.value_text(value, unit) == text


@pytest.mark.parametrize("unit", ["FLOP", "B"])
@given(value=st.floats(0, 1e18))
def test_rates(unit: str, value: float) -> None:
    text = units.rate_text(value, unit).replace(",", "")
    found = re.fullmatch(r"<?([\d.]+) ([kMGT]?)" + unit + "/s", text)
    assert found
    size = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[found[2]]
    assert abs(float(found[1]) * size - value) <= max(0.001, value * 0.00501)
    assert value < 1000 * size or size == 1e12


def test_the_page_and_the_terminal_write_alike() -> None:
    """Both are held to the same texts."""
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert {case["unit"] for case in cases} == set(units.UNITS)
    for case in cases:
        assert units.value_text(case["value"], case["unit"]) == case["text"], case
