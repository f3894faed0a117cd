"""Peak rates of devices: operations per second by dtype, and memory bytes per second.

Operations are those of dense matrix products with 32-bit accumulation, on tensor or matrix cores
where the device has them for the dtype, as the vendor states them at boost clock; figures with
sparsity are halved. `tf32` is float32 input on tensor cores (xf32 on AMD). Figures without a source
are left out. They apply to what PyTorch calls one device: for an MI250 or MI250X that is one of two
dies.

A device is identified by its full name and, if the trace has it, its number of multiprocessors: a
partition of a device (MIG) is another device, and unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_OPERATIONS_PER_TFLOP: Final = 10**12
"""Operations per second in one TFLOP/s."""
_BYTES_PER_GB: Final = 10**9
"""Bytes per second in one GB/s."""


@dataclass(frozen=True, slots=True)
class DevicePeakRates:
    """One device's peak rates: operations per second by dtype, and memory bytes per second."""

    operations: dict[str, float]
    """Operations per second by dtype: float64, float32, tf32, float16, bfloat16, float8, int8."""
    bytes: float
    """Peak bytes per second between the device and its memory."""
    multiprocessors: int | None
    """The number of SMs, or of compute units on AMD; None if unknown."""
    source: str
    """The title of the vendor's document with these figures."""


_PEAK_RATE_DTYPES: Final = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8")
"""Dtypes of the columns of peak rates, in order."""

_PEAK_RATES_TABLE: Final[tuple[tuple[object, ...], ...]] = (
    # names; TFLOP/s in fp64, fp32, tf32, fp16, bf16, fp8, TOP/s in int8; GB/s; SMs; source
    (
        "Tesla P100-SXM2-16GB",
        5.3, 10.6, None, 21.2, None, None, None, 732, 56,
        "Tesla P100 datasheet",
    ),
    (
        "Tesla P100-PCIE-16GB",
        4.7, 9.3, None, 18.7, None, None, None, 732, 56,
        "Tesla P100 datasheet",
    ),
    (
        "Tesla P100-PCIE-12GB",
        4.7, 9.3, None, 18.7, None, None, None, 549, 56,
        "Tesla P100 datasheet",
    ),
    (
        "Tesla V100-SXM2-16GB|Tesla V100-SXM2-32GB|Tesla V100-SXM3-32GB|Tesla V100-DGXS-32GB",
        7.8, 15.7, None, 125, None, None, None, 900, 80,
        "V100 datasheet",
    ),
    (
        "Tesla V100-PCIE-16GB|Tesla V100-PCIE-32GB",
        7.0, 14.0, None, 112, None, None, None, 900, 80,
        "V100 datasheet",
    ),
    (
        "Tesla V100S-PCIE-32GB",
        8.2, 16.4, None, 130, None, None, None, 1134, 80,
        "V100 datasheet",
    ),
    ("Tesla T4", None, 8.1, None, 65, None, None, 130, 320, 40, "T4 product brief PB-09256"),
    ("A10", None, 31.2, 62.5, 125, 125, None, 250, 600, 72, "A10 datasheet"),
    ("A30", 10.3, 10.3, 82, 165, 165, None, 330, 933, 56, "A30 datasheet"),
    ("A40", None, 37.4, 74.8, 149.7, 149.7, None, 299.3, 696, 84, "A40 datasheet"),
    (
        "A100-SXM4-40GB|A100-PCIE-40GB",
        19.5, 19.5, 156, 312, 312, None, 624, 1555, 108,
        "A100 datasheet",
    ),
    ("A100-SXM4-80GB", 19.5, 19.5, 156, 312, 312, None, 624, 2039, 108, "A100 datasheet"),
    ("A100 80GB PCIe", 19.5, 19.5, 156, 312, 312, None, 624, 1935, 108, "A100 datasheet"),
    ("L4", None, 30.3, 60, 121, 121, 242.5, 242.5, 300, 58, "L4 datasheet"),
    ("L40", None, 90.5, 90.5, 181.05, 181.05, 362, 362, 864, 142, "L40 datasheet"),
    ("L40S", None, 91.6, 183, 362.05, 362.05, 733, 733, 864, 142, "L40S datasheet"),
    (
        "GeForce RTX 3090",
        None, 35.6, 35.6, 71, 71, None, 284, 936, 82,
        "GA102 architecture whitepaper",
    ),
    (
        "GeForce RTX 3090 Ti",
        None, 40, 40, 80, 80, None, 320, 1008, 84,
        "GA102 architecture whitepaper",
    ),
    (
        "GeForce RTX 4090",
        None, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6, 1008, 128,
        "Ada architecture whitepaper",
    ),
    (
        "GeForce RTX 5090",
        None, 104.8, 104.8, 209.5, 209.5, 419, 838, 1792, 170,
        "RTX Blackwell architecture whitepaper",
    ),
    ("H100 80GB HBM3", 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 3350, 132, "H100 datasheet"),
    ("H100 PCIe", 51, 51, 378, 756, 756, 1513, 1513, 2000, 114, "H100 datasheet"),
    ("H100 NVL", 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 3900, 132, "H100 NVL datasheet"),
    (
        "GH200 480GB|GH200 120GB",
        67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 4000, 132,
        "GH200 datasheet",
    ),
    ("GH200 144G HBM3e", 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 4900, 132, "GH200 datasheet"),
    ("H200", 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 4800, 132, "H200 datasheet"),
    ("H200 NVL", 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 4800, 132, "H200 datasheet"),
    ("B200", 37, 75, 1100, 2250, 2250, 4500, 4500, 8000, 148, "Blackwell datasheet, HGX B200"),
    ("GB200", 40, 80, 1250, 2500, 2500, 5000, 5000, 8000, None, "GB200 NVL72 datasheet"),
    ("MI100", 11.5, 46.1, None, 184.6, 92.3, None, 184.6, 1228.8, 120, "MI100 data sheet"),
    ("MI210", 45.3, 45.3, None, 181, 181, None, 181, 1638.4, 104, "MI210 data sheet"),
    (
        "MI250|MI250X/MI250",
        45.25, 45.25, None, 181.05, 181.05, None, 181.05, 1638.4, 104,
        "MI250 data sheet, halved",
    ),
    (
        "MI250X|MI250X/MI250",
        47.85, 47.85, None, 191.5, 191.5, None, 191.5, 1638.4, 110,
        "MI250X data sheet, halved",
    ),
    ("MI300A", 122.6, 122.6, 490.3, 980.6, 980.6, 1961.2, 1961.2, 5300, 228, "MI300A data sheet"),
    (
        "MI300X|MI300X VF",
        163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 5300, 304,
        "MI300X data sheet",
    ),
    (
        "MI325X|MI325X VF",
        163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 6000, 304,
        "MI325X data sheet",
    ),
    (
        "MI350X|MI350X VF",
        72.1, 144.2, None, 2306.9, 2306.9, 4613.7, 4613.7, 8000, 256,
        "MI350X data sheet",
    ),
    (
        "MI355X|MI355X VF",
        78.6, 157.3, None, 2516.6, 2516.6, 5033.2, 5033.2, 8000, 256,
        "MI355X data sheet",
    ),
)  # fmt: skip
"""Peak rates, one row per device: names; TFLOP/s by dtype, TOP/s for int8; memory GB/s; SMs;
source.
"""


def _each_device_name_and_peaks() -> Iterator[tuple[str, DevicePeakRates]]:
    """Yields (device name, peak rates) for each name in the table of peak rates."""
    for names, *figures, bandwidth, many, source in _PEAK_RATES_TABLE:
        operations = {
            dtype: float(rate) * _OPERATIONS_PER_TFLOP  # type: ignore[arg-type]  # a number, by the table's form
            for dtype, rate in zip(_PEAK_RATE_DTYPES, figures, strict=True)
            if rate is not None
        }
        for name in str(names).split("|"):
            bytes_per_second = float(bandwidth) * _BYTES_PER_GB  # type: ignore[arg-type]  # a number
            yield name, DevicePeakRates(operations, bytes_per_second, many, str(source))  # type: ignore[arg-type]  # likewise


def _all_peaks_by_name() -> dict[str, tuple[DevicePeakRates, ...]]:
    """Returns the peak rates of all devices by name."""
    found: dict[str, tuple[DevicePeakRates, ...]] = {}
    for name, peaks in _each_device_name_and_peaks():
        found[name] = (*found.get(name, ()), peaks)
    return found


PEAK_RATES_BY_DEVICE_NAME: Final = _all_peaks_by_name()
"""Maps a device name without the vendor to its peak rates: one entry for each device of that name.
"""

_VENDOR_PREFIXES: Final = ("NVIDIA ", "AMD Instinct ", "AMD ")
"""Vendors' prefixes of device names, which are removed before a look-up."""


def peak_rates(
    device_name: str | None, multiprocessors: int | None = None
) -> DevicePeakRates | None:
    """Returns a device's peak rates by name and number of multiprocessors; None if unknown.

    >>> peak_rates("NVIDIA H100 80GB HBM3").operations["bfloat16"] / 1e12
    989.4
    >>> peak_rates("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14), peak_rates("AMD Radeon Graphics")
    (None, None)
    """
    if not device_name:
        return None
    plain = " ".join(device_name.split())
    for vendor in _VENDOR_PREFIXES:
        plain = plain.removeprefix(vendor)
    known = PEAK_RATES_BY_DEVICE_NAME.get(plain, ())
    found = [
        peaks for peaks in known if _are_equal_or_unknown(peaks.multiprocessors, multiprocessors)
    ]
    return found[0] if len(found) == 1 else None


def _are_equal_or_unknown(first: int | None, second: int | None) -> bool:
    """Returns whether two numbers are equal, or one of them is unknown."""
    return first is None or second is None or first == second
