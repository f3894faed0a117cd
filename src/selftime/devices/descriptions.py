"""Names PyTorch's device types, and matches devices to their descriptions in a trace."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

DEVICE_TYPE_NAMES: Final = {
    0: "CPU",
    1: "CUDA",
    2: "MKLDNN",
    5: "IDEEP",
    6: "HIP",
    7: "FPGA",
    9: "XLA",
    10: "Vulkan",
    11: "Metal",
    12: "XPU",
    13: "MPS",
    14: "Meta",
    15: "HPU",
    16: "VE",
    17: "Lazy",
    18: "IPU",
    19: "MTIA",
    20: "PrivateUse1",
}
"""Maps the number of a `c10::DeviceType` to its name (c10/core/DeviceType.h)."""

HOST_DEVICE_TYPES: Final = (0, 2, 5)
"""Numbers of the device types whose memory is host memory."""


def is_amd_recording(metadata: Mapping[str, Any]) -> bool:
    """Returns whether a trace was recorded on AMD devices, according to its header."""
    keys = {"hip_runtime_version", "hip_driver_version", "roctracer_version"}
    if keys & metadata.keys():
        return True
    described = metadata.get("deviceProperties")
    first = described[0] if isinstance(described, list) and described else None
    return isinstance(first, dict) and str(first.get("name", "")).startswith("AMD ")


def description_row_by_device(
    device_numbers: Sequence[int],
    described_numbers: Sequence[int | None],
    *,
    is_amd_trace: bool,
    rank: int | None,
) -> dict[int, int]:
    """Returns, for each device number in a trace, the row of the table that describes the device.

    NVIDIA's numbers are those of the descriptions. AMD recordings number devices as the HSA runtime
    does, hosts first, so that the number means nothing: the only description is used, else the one
    of the rank, else the order if as many devices were used as are described.

    >>> description_row_by_device([0, 1], [0, 1], is_amd_trace=False, rank=None)
    {0: 0, 1: 1}
    >>> description_row_by_device([2], [0], is_amd_trace=True, rank=None)
    {2: 0}
    """
    rows = {index: row for row, index in enumerate(described_numbers) if index is not None}
    numbers = sorted(set(device_numbers))
    if not is_amd_trace:
        return {number: rows[number] for number in numbers if number in rows}
    if len(described_numbers) == 1:
        return dict.fromkeys(numbers, 0)
    if len(numbers) == 1 and rank is not None and described_numbers:
        return {numbers[0]: rank % len(described_numbers)}
    if len(numbers) == len(described_numbers):
        return {number: row for row, number in enumerate(numbers)}
    return {}
