"""Defines the units of table columns, and formats values as text in their unit.

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
"""The unit of a column's values, such as `ns` or `bytes`."""

UNITS: Final[tuple[str, ...]] = get_args(Unit)
"""All units, for checks and documentation."""

_TIME_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
"""Pairs (size in ns, unit of time), the largest first."""
_BRIEF_TIME_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
"""The same with the sign of micro, for times that people read and programs do not."""
_LEAST_WITH_THREE_DIGITS: Final = 0.9995
"""Smallest value that three significant digits do not write below 1."""
_LONGEST_TIME_IN_MS: Final = 10_000
"""Smallest time in ms that is written in s."""
_SMALLEST_TIME_IN_MS: Final = 0.01
"""Smallest time in ms of which two decimals leave a digit."""
_BYTE_UNITS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
"""Pairs (number of bytes, unit of size), the largest first."""
_RATE_PREFIXES: Final = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
"""Pairs (factor, prefix) for rates such as FLOP/s, the largest first."""
_COUNT_PREFIXES: Final = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
"""Pairs (factor, prefix) for counts, the largest first."""


def time_text(nanoseconds: float) -> str:
    """Returns a duration in ns as text such as `1.500 ms`, in the largest unit in which it is >= 1.

    >>> time_text(1_234_567), time_text(999), time_text(-2_000), time_text(0)
    ('1.235 ms', '999 ns', '-2.000 us', '0 ns')
    """
    for size, unit in _TIME_UNITS:
        if round(abs(nanoseconds)) >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{round(nanoseconds)} ns"


def brief_time_text(nanoseconds: float) -> str:
    """Returns a duration in ns as text with three significant digits, for people to compare.

    >>> brief_time_text(84_000), brief_time_text(564_230_000), brief_time_text(999_900)
    ('84.0 µs', '564 ms', '1.00 ms')
    >>> brief_time_text(640), brief_time_text(0), brief_time_text(4e12)
    ('640 ns', '0 ns', '4,000 s')
    """
    for size, unit in _BRIEF_TIME_UNITS:
        value = nanoseconds / size
        if abs(value) >= _LEAST_WITH_THREE_DIGITS:
            digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
            return f"{value:,.{digits}f} {unit}"
    return f"{round(nanoseconds)} ns"


def seconds_text(nanoseconds: float) -> str:
    """Returns a duration in ns as text for long times, such as `38 ms`, `2.5 s` or `3 min 12 s`.

    >>> seconds_text(192e9), seconds_text(31.04e9), seconds_text(2.5e9), seconds_text(38e6)
    ('3 min 12 s', '31 s', '2.5 s', '38 ms')
    """
    seconds = nanoseconds / 1e9
    if seconds < 1:
        return f"{nanoseconds / 1e6:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def bytes_text(byte_count: float) -> str:
    """Returns a number of bytes as text in binary units, such as `1.50 MiB`.

    >>> bytes_text(1536), bytes_text(-3), bytes_text(0)
    ('1.50 KiB', '-3 B', '0 B')
    """
    for step, unit in _BYTE_UNITS:
        if abs(byte_count) >= step:
            return f"{byte_count / step:.2f} {unit}"
    return f"{round(byte_count)} B"


def count_text(count: float) -> str:
    """Returns a count as text: all digits below a million, else with a prefix such as M.

    >>> count_text(1234), count_text(2_500_000)
    ('1,234', '2.50 M')
    """
    for step, unit in _COUNT_PREFIXES:
        if abs(count) >= step:
            return f"{count / step:.2f} {unit}"
    return f"{round(count):,}"


def rate_text(rate: float, unit: str) -> str:
    """Returns a rate as text with a decimal prefix, such as `1.50 TFLOP/s`.

    >>> rate_text(989.4e12, "FLOP"), rate_text(3.35e12, "B"), rate_text(0.5, "B")
    ('989.40 TFLOP/s', '3.35 TB/s', '0.50 B/s')
    """
    for step, letter in _RATE_PREFIXES:
        if abs(rate) >= step:
            return f"{rate / step:.2f} {letter}{unit}/s"
    return f"{rate:.2f} {unit}/s"


def share_text(ratio: float) -> str:
    """Returns a ratio such as 0.05 as a percentage, such as `5.0 %`.

    >>> share_text(0.1234), share_text(1)
    ('12.3 %', '100.0 %')
    """
    return f"{ratio:.1%}".replace("%", " %")


def whole_percent_text(ratio: float) -> str:
    """Returns a ratio such as 0.05 as a whole percentage, such as `5 %`.

    >>> whole_percent_text(0.1234), whole_percent_text(1)
    ('12 %', '100 %')
    """
    return f"{ratio:.0%}".replace("%", " %")


def milliseconds_text(milliseconds: float) -> str:
    """Returns a duration in ms as text with three significant digits, in s from 10 s on.

    >>> milliseconds_text(1234.5), milliseconds_text(12.25), milliseconds_text(0.125)
    ('1,234 ms', '12.2 ms', '0.12 ms')
    >>> milliseconds_text(43_425)
    '43.4 s'
    """
    if abs(milliseconds) >= _LONGEST_TIME_IN_MS:
        return brief_time_text(milliseconds * 1e6)
    digits = (
        0 if abs(milliseconds) >= 100 or not milliseconds else 1 if abs(milliseconds) >= 10 else 2
    )
    return f"{milliseconds:,.{digits}f} ms"


def short_time_text(milliseconds: float) -> str:
    """Returns a duration in ms as text, in us or ns if it is below 0.01 ms.

    >>> short_time_text(0.0031), short_time_text(0.125), short_time_text(0)
    ('3.100 us', '0.12 ms', '0 ms')
    """
    if 0 < abs(milliseconds) < _SMALLEST_TIME_IN_MS:
        return time_text(milliseconds * 1e6)
    return milliseconds_text(milliseconds)


def rounded_json(json_value: Any) -> Any:
    """Returns a JSON value with its floats rounded to 6 decimals (milliseconds to nanoseconds).

    >>> rounded_json({"saved_ms": (1.23456789, None, 3)})
    {'saved_ms': [1.234568, None, 3]}
    """
    if isinstance(json_value, dict):
        return {key: rounded_json(inner) for key, inner in json_value.items()}
    if isinstance(json_value, list | tuple):
        return [rounded_json(inner) for inner in json_value]
    return round(json_value, 6) if isinstance(json_value, float) else json_value


def value_text(value: object, unit: Unit) -> str:
    """Returns the text of a column's value in its unit; a dash for null.

    >>> value_text(None, "ns"), value_text(2048, "bytes"), value_text(True, "flag")
    ('-', '2.00 KiB', 'yes')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _text_of_number_with_unit(value, unit)
    return str(value)


def _text_of_number_with_unit(value: float, unit: Unit) -> str:
    """Returns a number as text followed by its unit."""
    written = _TEXT_FUNCTION_OF_UNIT.get(unit)
    return str(value) if written is None else written(value)


_TEXT_FUNCTION_OF_UNIT: Final[dict[Unit, Callable[[float], str]]] = {
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
"""Maps each unit to the function that formats a number in that unit as text."""
