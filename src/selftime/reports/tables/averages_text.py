"""Writes the cells of the table of operators as torch writes those of `key_averages()`."""

from collections.abc import Iterable
from typing import Final

MICROSECONDS_PER_UNIT: Final = {"s": 1e6, "ms": 1e3, "us": 1.0}
"""Microseconds per unit of time."""
_MEMORY_UNIT_SIZES_AND_NAMES: Final = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))
"""Pairs of a memory unit's bytes and name, the largest unit first."""
_FLOPS_UNIT_NAMES: Final = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
"""Units of floating-point operations, each 1000 times the one before."""


def microseconds_text(microseconds: float, unit: str | None) -> str:
    """Returns a time as text in the given unit; if None, in s, ms or us by its size, as torch."""
    if unit is None:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / MICROSECONDS_PER_UNIT[unit]:.3f}{unit}"


def limit_column_width(width: int, max_width: int | None) -> int:
    return width if max_width is None else min(width, max_width)


def cut_name_as_torch(name: str, limit: int | None) -> str:
    """Returns a name of `limit - 3` or more characters cut to `limit - 3` and `...`, as torch.

    A shorter name is returned unchanged, and so is any name if `limit` is None.
    """
    return name if limit is None or len(name) < limit - 3 else name[: limit - 3] + "..."


def cut_text_start(text: str, width: int) -> str:
    """Returns the text without its start if it has more than `width` characters."""
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def percentage_text(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def byte_count_text(byte_count: int) -> str:
    for unit_bytes, unit in _MEMORY_UNIT_SIZES_AND_NAMES:
        if abs(byte_count) >= unit_bytes:
            return f"{byte_count / unit_bytes:.2f} {unit}"
    return f"{byte_count} B"


def flops_factor_and_unit(flops: Iterable[int]) -> tuple[float, str] | None:
    """Returns (factor, name) of the unit for FLOP counts, from the smallest count; None if none."""
    counts = [count for count in flops if count > 0]
    if not counts:
        return None
    unit_index = min((len(str(min(counts))) - 1) // 3, len(_FLOPS_UNIT_NAMES) - 1)
    return 10.0 ** (-3 * unit_index), _FLOPS_UNIT_NAMES[unit_index]
