"""Defines what a CPU was measured to do: products of matrices and copies of memory, a second."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeGuard


@dataclass(frozen=True, slots=True)
class CpuPeakRates:
    """The highest rates that some threads of a CPU reached, in trials after a program's end."""

    threads: int
    """The number of threads that shared the work."""
    operations: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Operations per second of products of matrices, by dtype."""
    copies: tuple[tuple[int, float], ...] = ()
    """Bytes that a copy moved, read and written, and bytes per second; the smallest copy first.

    Small ones stay in the caches, so that their rate is higher.
    """

    def bytes_per_second(self, moved: float) -> float | None:
        """Returns the rate of the largest copy that moved at most so many bytes; None if unknown.

        Of fewer bytes than the smallest copy it is that of the smallest.

        >>> rates = CpuPeakRates(1, {}, ((1 << 20, 80e9), (1 << 26, 20e9)))
        >>> rates.bytes_per_second(1 << 25), rates.bytes_per_second(1 << 10)
        (80000000000.0, 80000000000.0)
        """
        if not self.copies:
            return None
        fitting = [rate for size, rate in self.copies if size <= moved]
        return fitting[-1] if fitting else self.copies[0][1]

    def as_json(self) -> dict[str, Any]:
        """Returns the rates as JSON values, which `cpu_peak_rates_from_json` reads."""
        return {
            "threads": self.threads,
            "flops": dict(self.operations),
            "copies": [list(copy) for copy in self.copies],
        }


def cpu_peak_rates_from_json(value: object) -> CpuPeakRates | None:
    """Returns the rates that `CpuPeakRates.as_json` wrote; None if they are not such rates.

    >>> cpu_peak_rates_from_json({"threads": 2, "flops": {"float32": 1e11}, "copies": []})
    CpuPeakRates(threads=2, operations=mappingproxy({'float32': 100000000000.0}), copies=())
    >>> cpu_peak_rates_from_json({"threads": 0}) is None
    True
    """
    if not isinstance(value, dict):
        return None
    threads, flops, copies = value.get("threads"), value.get("flops"), value.get("copies")
    if type(threads) is not int or threads < 1 or not isinstance(flops, dict):
        return None
    if not isinstance(copies, list) or not all(_is_copy(copy) for copy in copies):
        return None
    if not all(_is_rate(rate) for rate in flops.values()):
        return None
    operations = {str(dtype): float(rate) for dtype, rate in flops.items()}
    sizes = tuple(sorted((int(size), float(rate)) for size, rate in copies))
    return CpuPeakRates(threads, MappingProxyType(operations), sizes)


def _is_copy(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_rate(one) for one in value)


def _is_rate(value: object) -> TypeGuard[float]:
    return type(value) in {int, float} and 0 < value < float("inf")  # type: ignore[operator]  # a number
