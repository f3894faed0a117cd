"""Units: the meaning of a number, and its text for people.

A column declares its unit in `schema`; only this module decides how a quantity is printed. Times
are integer nanoseconds everywhere; only this module turns them into text.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, get_args

Unit: TypeAlias = Literal[
    "ns",  # a duration
    "instant",  # nanoseconds since the trace's origin
    "bytes",
    "count",
    "flops",
    "flops/s",
    "bytes/s",
    "flops/byte",
    "ratio",  # a share: 1.0 is the whole
    "percent",  # a share that the trace wrote in percent: 100.0 is the whole
    "gb/s",
    "times",  # a factor: 1.5 is half as much again
    "id",
    "name",
    "text",
    "sentence",  # prose, which is wrapped where a name would be cut
    "flag",
]

KINDS: Final[tuple[str, ...]] = get_args(Unit)
"""All units, for checks and documentation."""

_TIME_STEPS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
_BYTE_STEPS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_RATE_STEPS: Final = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
_COUNT_STEPS: Final = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))


def time_text(nanoseconds: float) -> str:
    """Returns a duration in ns as text, in the largest unit that keeps it at 1 or more.

    >>> time_text(1_234_567), time_text(999), time_text(-2_000), time_text(0)
    ('1.235 ms', '999 ns', '-2.000 us', '0 ns')
    """
    for size, unit in _TIME_STEPS:
        if round(abs(nanoseconds)) >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{round(nanoseconds)} ns"


def bytes_text(size: float) -> str:
    """Returns a size in bytes as text, in binary units.

    >>> bytes_text(1536), bytes_text(-3), bytes_text(0)
    ('1.50 KiB', '-3 B', '0 B')
    """
    for step, unit in _BYTE_STEPS:
        if abs(size) >= step:
            return f"{size / step:.2f} {unit}"
    return f"{round(size)} B"


def count_text(count: float) -> str:
    """Returns a count as text: in full below a million, scaled above.

    >>> count_text(1234), count_text(2_500_000)
    ('1,234', '2.50 M')
    """
    for step, unit in _COUNT_STEPS:
        if abs(count) >= step:
            return f"{count / step:.2f} {unit}"
    return f"{round(count):,}"


def rate_text(rate: float, unit: str) -> str:
    """Returns a rate per second as text, in decimal steps as vendors state peak rates.

    >>> rate_text(989.4e12, "FLOP"), rate_text(3.35e12, "B"), rate_text(0.5, "B")
    ('989.40 TFLOP/s', '3.35 TB/s', '0.50 B/s')
    """
    for step, letter in _RATE_STEPS:
        if abs(rate) >= step:
            return f"{rate / step:.2f} {letter}{unit}/s"
    return f"{rate:.2f} {unit}/s"


def share_text(ratio: float) -> str:
    """Returns a ratio as text, in percent.

    >>> share_text(0.1234), share_text(1)
    ('12.3 %', '100.0 %')
    """
    return f"{ratio:.1%}".replace("%", " %")


def milliseconds_text(value: float) -> str:
    """Milliseconds with three significant digits, as people compare them.

    >>> milliseconds_text(1234.5), milliseconds_text(12.25), milliseconds_text(0.125)
    ('1,234 ms', '12.2 ms', '0.12 ms')
    """
    digits = 0 if abs(value) >= 100 or not value else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} ms"


def rounded(value: Any) -> Any:
    """Returns a JSON value with its floats rounded to 6 decimals (milliseconds to nanoseconds).

    >>> rounded({"saved_ms": (1.23456789, None, 3)})
    {'saved_ms': [1.234568, None, 3]}
    """
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return round(value, 6) if isinstance(value, float) else value


def text(value: object, unit: Unit) -> str:
    """Returns the text of a column's value in its unit; a dash for null.

    >>> text(None, "ns"), text(2048, "bytes"), text(True, "flag"), text(7, "id")
    ('-', '2.00 KiB', 'yes', '7')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(value, unit)
    return str(value)


def _number(value: float, unit: Unit) -> str:
    written = _WRITTEN.get(unit)
    return str(value) if written is None else written(value)


_WRITTEN: Final[dict[Unit, Callable[[float], str]]] = {
    "ns": time_text,
    "instant": time_text,
    "bytes": bytes_text,
    "count": count_text,
    "flops": count_text,
    "flops/s": lambda value: rate_text(value, "FLOP"),
    "bytes/s": lambda value: rate_text(value, "B"),
    "flops/byte": lambda value: f"{value:.2f} FLOP/B",
    "ratio": share_text,
    "percent": lambda value: share_text(value / 100),
    "gb/s": lambda value: f"{value:.1f} GB/s",
    "times": lambda value: f"{value:.1f} times",
}
