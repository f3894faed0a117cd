"""PyTorch's device types, and the match of devices to their descriptions in a trace."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

DEVICE_TYPES: Final = {
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
"""Names of `c10::DeviceType` by number (c10/core/DeviceType.h)."""

HOST_TYPES: Final = (0, 2, 5)
"""Device types whose memory is the host's."""


def is_amd(metadata: Mapping[str, Any]) -> bool:
    """Whether a trace was recorded on AMD devices, according to its header."""
    keys = {"hip_runtime_version", "hip_driver_version", "roctracer_version"}
    if keys & metadata.keys():
        return True
    described = metadata.get("deviceProperties")
    first = described[0] if isinstance(described, list) and described else None
    return isinstance(first, dict) and str(first.get("name", "")).startswith("AMD ")


def description_rows(
    seen: Sequence[int], described: Sequence[int | None], *, amd: bool, rank: int | None
) -> dict[int, int]:
    """Returns for each device number in the trace the row that describes the device.

    NVIDIA's numbers are those of the descriptions. AMD recordings number devices as the HSA runtime
    does, hosts first, so that the number means nothing: the only description is used, else the one
    of the rank, else the order if as many devices were used as are described.

    >>> description_rows([0, 1], [0, 1], amd=False, rank=None)
    {0: 0, 1: 1}
    >>> description_rows([2], [0], amd=True, rank=None)
    {2: 0}
    """
    rows = {index: row for row, index in enumerate(described) if index is not None}
    numbers = sorted(set(seen))
    if not amd:
        return {number: rows[number] for number in numbers if number in rows}
    if len(described) == 1:
        return dict.fromkeys(numbers, 0)
    if len(numbers) == 1 and rank is not None and described:
        return {numbers[0]: rank % len(described)}
    if len(numbers) == len(described):
        return {number: row for row, number in enumerate(numbers)}
    return {}
