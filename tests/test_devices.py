"""Which description belongs to which device number."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.devices import (
    DEVICE_TYPE_NAMES,
    HOST_DEVICE_TYPES,
    PEAK_RATES_BY_DEVICE_NAME,
    description_row_by_device,
    is_amd_recording,
    peak_rates,
)

numbers = st.lists(st.integers(0, 9), max_size=9)


@pytest.mark.parametrize(
    ("seen", "described", "amd", "rank", "rows"),
    [
        ([], [], False, None, {}),
        ([0], [0], False, None, {0: 0}),
        ([3, 3, 1], [0, 1, 2, 3], False, 0, {1: 1, 3: 3}),
        ([7], [0, 1], False, None, {}),
        ([1], [1, 0], False, None, {1: 0}),
        ([0], [None], False, None, {}),
        ([2], [0], True, None, {2: 0}),
        ([2], [0, 1, 2, 3], True, 1, {2: 1}),
        ([2], [0, 1, 2, 3], True, 5, {2: 1}),
        ([2], [0, 1, 2, 3], True, None, {}),
        ([4, 2], [0, 1], True, None, {2: 0, 4: 1}),
        ([4, 2], [0, 1, 2], True, 0, {}),
        ([2], [], True, 0, {}),
    ],
)
def test_examples(
    seen: list[int], described: list[int | None], amd: bool, rank: int | None, rows: dict[int, int]
) -> None:
    assert description_row_by_device(seen, described, is_amd_trace=amd, rank=rank) == rows


@given(numbers, numbers, st.booleans(), st.none() | st.integers(0, 20))
def test_rows_exist_and_devices_were_seen(
    seen: list[int], described: list[int], amd: bool, rank: int | None
) -> None:
    rows = description_row_by_device(seen, described, is_amd_trace=amd, rank=rank)
    assert set(rows) <= set(seen)
    assert all(0 <= row < len(described) for row in rows.values())


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, False),
        ({"cuda_runtime_version": 12080}, False),
        ({"hip_runtime_version": 60200000}, True),
        ({"deviceProperties": [{"name": "AMD Instinct MI300X"}]}, True),
        ({"deviceProperties": [{"name": "NVIDIA H100"}]}, False),
        ({"deviceProperties": []}, False),
        ({"deviceProperties": "x"}, False),
    ],
)
def test_vendors(metadata: dict[str, Any], *, expected: bool) -> None:
    assert is_amd_recording(metadata) is expected


def test_types_of_the_host_have_names() -> None:
    assert set(HOST_DEVICE_TYPES) < set(DEVICE_TYPE_NAMES)


@pytest.mark.parametrize(
    ("name", "multiprocessors", "half", "memory"),
    [
        ("Tesla V100-SXM2-16GB", 80, 125, 900),
        ("Tesla V100-PCIE-32GB", None, 112, 900),
        ("NVIDIA A100-SXM4-80GB", 108, 312, 2039),
        ("NVIDIA A100 80GB PCIe", 108, 312, 1935),
        ("A100-SXM4-40GB", 108, 312, 1555),
        ("NVIDIA H100 80GB HBM3", 132, 989.4, 3350),
        ("NVIDIA H100 PCIe", 114, 756, 2000),
        ("NVIDIA GB200", 152, 2500, 8000),
        ("AMD Instinct MI300X VF", 304, 1307.4, 5300),
        ("AMD Instinct MI250X/MI250", 104, 181.05, 1638.4),
        ("AMD Instinct MI250X/MI250", 110, 191.5, 1638.4),
    ],
)
def test_peaks_of_a_device(
    name: str, multiprocessors: int | None, half: float, memory: float
) -> None:
    peaks = peak_rates(name, multiprocessors)
    assert peaks is not None
    assert peaks.operations["float16"] == pytest.approx(half * 1e12)
    assert peaks.bytes == pytest.approx(memory * 1e9)


@pytest.mark.parametrize(
    ("name", "multiprocessors"),
    [
        (None, None),
        ("", 304),
        ("AMD Radeon Graphics", 104),
        ("NVIDIA A10G", 80),
        ("NVIDIA H100", 132),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14),
        ("NVIDIA A100-SXM4-40GB", 14),
        ("AMD Instinct MI300X", 38),
        ("AMD Instinct MI250X/MI250", None),
    ],
)
def test_what_is_not_surely_known_has_no_peaks(
    name: str | None, multiprocessors: int | None
) -> None:
    assert peak_rates(name, multiprocessors) is None


def test_peaks_are_in_proportion() -> None:
    """A wider dtype is never faster, and the figures are those of machines of this age."""
    for name, devices in PEAK_RATES_BY_DEVICE_NAME.items():
        for peaks in devices:
            rates = [peaks.operations[d] for d in WIDTHS if d in peaks.operations]
            assert rates == sorted(rates), name
            assert peaks.operations["float32"] >= 8e12, name
            assert 3e11 <= peaks.bytes <= 8e12, name
            assert peaks.source


WIDTHS = ("float64", "float32", "tf32", "float16", "float8")
