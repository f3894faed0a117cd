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

_TIME_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
"""Pairs (size in ns, unit of time), the largest first."""
_LEAST_WITH_THREE_DIGITS: Final = 0.9995
"""Smallest value that three significant digits do not write below 1."""
_LEAST_SHOWN: Final = 0.0005
"""Smallest value that three decimals do not write as 0."""
_SMALLEST_SHARE_SHOWN: Final = 0.0005
"""Smallest share that one decimal of a percentage does not write as 0."""
_SMALLEST_WHOLE_PERCENT: Final = 0.005
"""Smallest share that a whole percentage does not write as 0."""
_LARGEST_PART: Final = 1 - 1e-12
"""Largest share that is less than the whole by more than its rounding as a float."""
_SHORTEST_WHOLE_MILLISECONDS: Final = 9_995_000
"""Smallest long time in ns that whole milliseconds write with two digits."""
_LONGEST_INSTANT_IN_MS: Final = 10_000_000_000
"""Smallest instant in ns that is written in s."""
_MOST_DIGITS_TO_DIFFER: Final = 4
"""Most decimals by which two values are told apart; beyond that they are written in full."""
_BYTE_UNITS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
"""Pairs (number of bytes, unit of size), the largest first."""
_MAX_SENTENCE_CHARACTERS: Final = 2_000
"""Largest number of characters of a sentence, which a name in a trace can make as long as it is."""
_RATE_PREFIXES: Final = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
"""Pairs (factor, prefix) for rates such as FLOP/s, the largest first."""
_LEAST_WITHOUT_TENTHS: Final = 10
"""Smallest number, such as a mean number of cores, that is rounded to a whole one."""
_COUNT_PREFIXES: Final = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
"""Pairs (factor, prefix) for counts, the largest first."""


def three_digits_text(value: float) -> str:
    """Returns a number with three significant digits, and at most three decimals.

    >>> three_digits_text(989.4), three_digits_text(12.345), three_digits_text(2039.26)
    ('989', '12.3', '2,039')
    >>> three_digits_text(0.125), three_digits_text(0.0001), three_digits_text(0)
    ('0.125', '<0.001', '0')
    """
    size = abs(value)
    if 0 < size < _LEAST_SHOWN:
        return "<0.001" if value > 0 else ">-0.001"
    if not size:
        return "0"
    limits = (_LEAST_WITH_THREE_DIGITS, 9.995, 99.95)
    return f"{value:,.{3 - sum(size >= limit for limit in limits)}f}"


def time_text(nanoseconds: float) -> str:
    """Returns a duration in ns as text with three significant digits, as people compare them.

    >>> time_text(84_000), time_text(564_230_000), time_text(999_900), time_text(4e12)
    ('84.0 µs', '564 ms', '1.00 ms', '4,000 s')
    >>> time_text(640), time_text(-2_000), time_text(0), time_text(0.4)
    ('640 ns', '-2.00 µs', '0 ms', '<1 ns')
    """
    if not nanoseconds:
        return "0 ms"
    for size, unit in _TIME_UNITS[:-1]:
        if abs(nanoseconds / size) >= _LEAST_WITH_THREE_DIGITS:
            return f"{three_digits_text(nanoseconds / size)} {unit}"
    if abs(nanoseconds) < _LEAST_WITH_THREE_DIGITS:
        return "<1 ns" if nanoseconds > 0 else ">-1 ns"
    return f"{round(nanoseconds)} ns"


def instant_text(nanoseconds: float) -> str:
    """Returns an instant as text: in ms to the microsecond, from 10 s on in s to the millisecond.

    Instants are told apart by their last digits, which three significant digits would leave out.

    >>> instant_text(1_234_567_890), instant_text(-2_000), instant_text(0), instant_text(12.3456e9)
    ('1,234.568 ms', '-0.002 ms', '0.000 ms', '12.346 s')
    """
    size, unit = (1e9, "s") if abs(nanoseconds) >= _LONGEST_INSTANT_IN_MS else (1e6, "ms")
    text = f"{nanoseconds / size:,.3f} {unit}"
    return text.removeprefix("-") if text.startswith("-0.000 ") else text


def time_range_text(low_ns: float, high_ns: float) -> str:
    """Returns two durations in ns as text, with their unit once where it is the same.

    >>> time_range_text(1_500_000, 22_000_000), time_range_text(0, 300), time_range_text(900, 1e6)
    ('1.50 to 22.0 ms', '0 to 300 ns', '900 ns to 1.00 ms')
    """
    return range_text(time_text(low_ns), time_text(high_ns))


def range_text(low: str, high: str) -> str:
    """Returns two amounts as the text of a range, with their unit once where it is the same.

    >>> range_text("450 ms", "700 ms"), range_text("450 ms", "1.2 s")
    ('450 to 700 ms', '450 ms to 1.2 s')
    """
    number, _, unit = low.partition(" ")
    is_shared = number == "0" or (high.partition(" ")[2] == unit and " " not in unit)
    return f"{number if is_shared else low} to {high}"


def seconds_text(nanoseconds: float) -> str:
    """Returns a duration in ns as text for long times, such as `38 ms`, `2.5 s` or `3 min 12 s`.

    >>> seconds_text(192e9), seconds_text(31.04e9), seconds_text(2.5e9), seconds_text(38e6)
    ('3 min 12 s', '31 s', '2.5 s', '38 ms')
    """
    seconds = nanoseconds / 1e9
    if nanoseconds < _SHORTEST_WHOLE_MILLISECONDS:
        return time_text(nanoseconds)
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
            return f"{three_digits_text(byte_count / step)} {unit}"
    return f"{round(byte_count):,} B"


def count_text(count: float) -> str:
    """Returns a count as text: all digits below a million, else with a prefix such as M.

    >>> count_text(1234), count_text(2_500_000)
    ('1,234', '2.50 M')
    """
    for step, unit in _COUNT_PREFIXES:
        if abs(count) >= step:
            return f"{three_digits_text(count / step)} {unit}"
    return f"{round(count):,}"


def tenths_text(count: float) -> str:
    """Returns a mean of counts, or a rough factor, as text: with tenths below ten if not whole.

    >>> tenths_text(2.5), tenths_text(12.0), tenths_text(1234.4), tenths_text(0.04)
    ('2.5', '12', '1,234', '0.040')
    """
    tenths = round(float(count), 1)
    if count and not tenths:
        return three_digits_text(count)
    if tenths.is_integer() or abs(tenths) >= _LEAST_WITHOUT_TENTHS:
        return count_text(count)
    return f"{tenths:.1f}"


def rate_text(rate: float, unit: str) -> str:
    """Returns a rate as text with a decimal prefix, such as `1.50 TFLOP/s`.

    >>> rate_text(989.4e12, "FLOP"), rate_text(3.35e12, "B"), rate_text(0.5, "B")
    ('989 TFLOP/s', '3.35 TB/s', '0.500 B/s')
    """
    for step, letter in _RATE_PREFIXES:
        if abs(rate) >= step:
            return f"{three_digits_text(rate / step)} {letter}{unit}/s"
    return f"{three_digits_text(rate)} {unit}/s"


def share_text(ratio: float) -> str:
    """Returns a ratio such as 0.05 as a percentage, such as `5.0 %`.

    What is not nothing or not all is not written so.

    >>> share_text(0.1234), share_text(1), share_text(0.0001), share_text(0), share_text(0.9999)
    ('12.3 %', '100.0 %', '<0.1 %', '0.0 %', '>99.9 %')
    """
    if 0 < abs(ratio) < _SMALLEST_SHARE_SHOWN:
        return "<0.1 %" if ratio > 0 else ">-0.1 %"
    text = f"{abs(ratio):.1%}".replace("%", " %")
    if abs(ratio) < _LARGEST_PART and text == "100.0 %":
        return ">99.9 %" if ratio > 0 else "<-99.9 %"
    return text if ratio >= 0 else f"-{text}"


def whole_percent_text(ratio: float) -> str:
    """Returns a ratio such as 0.05 as a whole percentage, such as `5 %`.

    What is not nothing or not all is not written so.

    >>> whole_percent_text(0.1234), whole_percent_text(1), whole_percent_text(0.001)
    ('12 %', '100 %', '<1 %')
    >>> whole_percent_text(0.996), whole_percent_text(0)
    ('>99 %', '0 %')
    """
    if 0 < ratio < _SMALLEST_WHOLE_PERCENT:
        return "<1 %"
    text = f"{ratio:.0%}".replace("%", " %")
    return ">99 %" if ratio < _LARGEST_PART and text == "100 %" else text


def times_text(factor: float) -> str:
    """Returns a factor as text with three significant digits, such as `1.50 times`.

    >>> times_text(1.5), times_text(161.876)
    ('1.50 times', '162 times')
    """
    return f"{three_digits_text(factor)} times"


def milliseconds_text(milliseconds: float) -> str:
    """Returns a duration in ms as text, as `time_text` does.

    >>> milliseconds_text(1234.5), milliseconds_text(12.25), milliseconds_text(0.125)
    ('1.23 s', '12.2 ms', '125 µs')
    """
    return time_text(milliseconds * 1e6)


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


def truncate_middle(text: str) -> str:
    """Returns the text; if it has over 2,000 characters, with `…` in place of its middle."""
    if len(text) <= _MAX_SENTENCE_CHARACTERS:
        return text
    half = (_MAX_SENTENCE_CHARACTERS - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


def truncate_middle_of_names(sentence: str) -> str:
    """Returns the sentence with `…` in place of the middle of each part of over 2,000 characters.

    Parts are the names in backticks, and what stands between them.

    >>> len(truncate_middle_of_names(f"`{'x' * 9_000}` cannot be read: no such file"))
    2030
    """
    return "`".join(map(truncate_middle, sentence.split("`")))


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


def text_with_unit(value: object, unit: Unit) -> str:
    """Returns the text of a value that may itself be text, such as `"77074"`, in its unit.

    >>> text_with_unit("77074", "ns"), text_with_unit("true", "flag"), text_with_unit("7", "id")
    ('77.1 µs', 'yes', '7')
    """
    if not isinstance(value, str):
        return value_text(value, unit)
    if unit == "flag":
        return value_text(value == "true", unit)
    if unit not in _TEXT_FUNCTION_OF_UNIT:
        return value
    try:
        return _text_of_number_with_unit(float(value), unit)
    except ValueError:
        return value


def texts_that_differ(first: float, second: float, unit: Unit) -> tuple[str, str]:
    """Returns two values as text, with as many digits as tell them apart if they differ.

    >>> texts_that_differ(2, 3, "count"), texts_that_differ(50_000_000, 50_010_000, "ns")
    (('2', '3'), ('50.00 ms', '50.01 ms'))
    >>> texts_that_differ(80_353_024, 80_354_048, "bytes")
    ('76.631 MiB', '76.632 MiB')
    >>> texts_that_differ(80_353_024, 80_353_025, "bytes")
    ('80,353,024 B', '80,353,025 B')
    >>> texts_that_differ(1e9, 1e9 + 1, "count")
    ('1,000,000,000', '1,000,000,001')
    """
    texts = value_text(first, unit), value_text(second, unit)
    if texts[0] != texts[1] or first == second:
        return texts
    scales = _TIME_UNITS if unit == "ns" else _BYTE_UNITS if unit == "bytes" else ()
    size, name = next(
        ((size, name) for size, name in scales if name == texts[0].split()[-1]), (1, "")
    )
    for digits in range(2, _MOST_DIGITS_TO_DIFFER + 1):
        longer = [f"{value / size:,.{digits}f} {name}" for value in (first, second)]
        if name and longer[0] != longer[1]:
            return longer[0], longer[1]
    suffix = " B" if unit == "bytes" else ""
    return f"{first:,.0f}{suffix}", f"{second:,.0f}{suffix}"


def _text_of_number_with_unit(value: float, unit: Unit) -> str:
    """Returns a number as text followed by its unit."""
    written = _TEXT_FUNCTION_OF_UNIT.get(unit)
    return str(value) if written is None else written(value)


_TEXT_FUNCTION_OF_UNIT: Final[dict[Unit, Callable[[float], str]]] = {
    "ns": time_text,
    "instant": instant_text,
    "bytes": bytes_text,
    "count": count_text,
    "flops": count_text,
    "flops/s": lambda value: rate_text(value, "FLOP"),
    "bytes/s": lambda value: rate_text(value, "B"),
    "flops/byte": lambda value: f"{three_digits_text(value)} FLOP/B",
    "ratio": share_text,
    "percent": lambda value: share_text(value / 100),
    "gb/s": lambda value: f"{three_digits_text(value)} GB/s",
    "times": times_text,
}
"""Maps each unit to the function that formats a number in that unit as text."""
