"""Which description belongs to which device number."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.devices import DEVICE_TYPES, HOST_TYPES, describe, is_amd

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
    assert describe(seen, described, amd=amd, rank=rank) == rows


@given(numbers, numbers, st.booleans(), st.none() | st.integers(0, 20))
def test_rows_exist_and_devices_were_seen(
    seen: list[int], described: list[int], amd: bool, rank: int | None
) -> None:
    rows = describe(seen, described, amd=amd, rank=rank)
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
    assert is_amd(metadata) is expected


def test_types_of_the_host_have_names() -> None:
    assert set(HOST_TYPES) < set(DEVICE_TYPES)
