"""Converts times from decimal microseconds, as traces have them, to exact integer nanoseconds.

Kineto writes `ts` and `dur` in microseconds, with up to three decimals. A double holds such a value
to the nanosecond below 2**43 us (102 days), where neighbouring doubles are less than 1 ns apart;
microseconds since the epoch are larger, so their text is read digit by digit.

Other writers use integer nanoseconds. Since the epoch these are so large that each number shows its
unit; smaller ones do not, see `times.unit`.
"""

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime.array_types import Ints
from selftime.ingest.events.event_types import NO_INT

MAX_EXACT_DOUBLE_US: Final = 2.0**43
"""Number of microseconds below which a double holds a time exactly to the nanosecond."""


_MAX_INT64: Final = 2**63 - 1
_NEWLINE_BYTE, _DOT_BYTE, _ZERO_DIGIT_BYTE = 10, 46, 48
_MAX_MICROSECOND_DECIMALS: Final = 3
_MAX_DIGITS_OF_WHOLE_MICROSECONDS: Final = 16
_MAX_DIGITS_OF_64_BIT_INTEGER: Final = 20  # digits of any integer of 64 bits
_SMALLEST_OVERFLOWING_FIRST_DIGIT: Final = (
    9  # as the first of sixteen digits of microseconds: perhaps beyond 2**63 ns
)
_MIN_EPOCH_TIME_WRITTEN_IN_NS: Final = 10**16
"""Smallest number taken for nanoseconds since the epoch; as microseconds it would be after the year
2286.
"""


class InexactTimeError(ValueError):
    """Raised for a time in microseconds that a double cannot hold exactly to the nanosecond."""


def to_nanoseconds(microseconds: list[Any]) -> Ints:
    """Converts times in microseconds, as floats or text, to ns; an absent time is `NO_INT`.

    >>> to_nanoseconds([0.001, float("nan")])[0], to_nanoseconds([b"1712217600000000.123"])[0]
    (np.int64(1), np.int64(1712217600000000123))
    """
    if not microseconds:
        return np.empty(0, np.int64)
    if isinstance(microseconds[0], float):
        return _nanoseconds_of_floats(np.array(microseconds, np.float64))
    text = b"\n".join(microseconds) + b"\n"
    times = _nanoseconds_of_lines(text)
    return _nanoseconds_of_each_text(microseconds) if times is None else times


def to_nanoseconds_and_unit(microseconds: list[Any]) -> tuple[Ints, NDArray[np.bool_] | None]:
    """Converts times to ns; also returns which were given in integer ns, or None if none were.

    Raises:
        InexactError: A float is larger than `MAX_EXACT_DOUBLE_US`.

    >>> to_nanoseconds_and_unit([b"1712217600000000123", b"1712217600000000.123"])[0].tolist()
    [1712217600000000123, 1712217600000000123]
    """
    if microseconds and isinstance(microseconds[0], float):
        times = np.array(microseconds, np.float64)
        if (np.abs(times) >= MAX_EXACT_DOUBLE_US).any():
            raise InexactTimeError
        return _nanoseconds_of_floats(times), None
    found = to_nanoseconds(microseconds)
    unknown = np.flatnonzero(found == NO_INT)
    if not unknown.size:
        return found, None
    written = np.zeros(found.size, bool)
    for at in unknown.tolist():
        text = bytes(microseconds[at]).strip(b'" ')
        is_whole = text.isdigit() and len(text) <= _MAX_DIGITS_OF_64_BIT_INTEGER
        if is_whole and _MIN_EPOCH_TIME_WRITTEN_IN_NS <= int(text) <= _MAX_INT64:
            found[at], written[at] = int(text), True
    return (found, written) if written.any() else (found, None)


def _nanoseconds_of_floats(microseconds: NDArray[np.float64]) -> Ints:
    known = np.abs(microseconds) < _MAX_INT64 // 1000
    whole, part = np.divmod(np.where(known, microseconds, 0.0), 1.0)
    exact = whole.astype(np.int64) * 1000 + np.rint(part * 1000).astype(np.int64)
    return np.where(known, exact, NO_INT)


def _nanoseconds_of_lines(text: bytes) -> Ints | None:
    """Converts each line of a text, a time in microseconds, to ns; None if a line is invalid.

    Returns None if a line is not a plain decimal of at most three decimals that fits 63 bits in ns.
    """
    if text.translate(None, b"0123456789.\n"):
        return None
    marks = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(marks == _NEWLINE_BYTE)
    begins = np.append(0, ends[:-1] + 1)
    lengths = ends - begins
    longest, shortest = int(lengths.max()), int(lengths.min())
    if (
        not 0
        < shortest
        <= longest
        <= _MAX_DIGITS_OF_WHOLE_MICROSECONDS + 1 + _MAX_MICROSECOND_DECIMALS
    ):
        return None
    if shortest == longest:
        return _nanoseconds_of_equally_long_lines(marks.reshape(-1, longest + 1)[:, :-1])
    found = np.empty(ends.size, np.int64)
    for length in np.unique(lengths).tolist():
        lines = np.flatnonzero(lengths == length)
        times = _nanoseconds_of_equally_long_lines(marks[begins[lines, None] + np.arange(length)])
        if times is None:
            return None
        found[lines] = times
    return found


def _nanoseconds_of_equally_long_lines(characters: NDArray[np.uint8]) -> Ints | None:
    """Converts times in microseconds, lines of equal length, to ns; None if one is invalid."""
    dots = characters == _DOT_BYTE
    count = int(dots.sum())
    first = int(dots[0].argmax()) if dots[0].any() else characters.shape[1]
    if (
        count == (characters.shape[0] if first < characters.shape[1] else 0)
        and dots[:, first:][:, :1].all()
    ):
        return _nanoseconds_with_point_at_column(characters, first)
    places = np.where(dots.any(axis=1), dots.argmax(axis=1), characters.shape[1])
    if count > (places < characters.shape[1]).sum():
        return None
    found = np.empty(characters.shape[0], np.int64)
    for point in np.unique(places).tolist():
        alike = np.flatnonzero(places == point)
        values = _nanoseconds_with_point_at_column(characters[alike], point)
        if values is None:
            return None
        found[alike] = values
    return found


def _nanoseconds_with_point_at_column(
    characters: NDArray[np.uint8], point_column: int
) -> Ints | None:
    """Converts decimals with the point at `point_column` to ns; None if one is invalid."""
    length = characters.shape[1]
    parts = max(length - point_column - 1, 0)
    too_large = point_column == _MAX_DIGITS_OF_WHOLE_MICROSECONDS and bool(
        (characters[:, 0] >= _ZERO_DIGIT_BYTE + _SMALLEST_OVERFLOWING_FIRST_DIGIT).any()
    )
    if (
        not 0 < point_column <= _MAX_DIGITS_OF_WHOLE_MICROSECONDS
        or parts > _MAX_MICROSECOND_DECIMALS
        or too_large
    ):
        return None
    total = np.zeros(characters.shape[0], np.int64)
    for column in range(length):
        if column != point_column:
            total *= 10
            total += characters[:, column] - np.uint8(_ZERO_DIGIT_BYTE)
    return np.asarray(total * 10 ** (_MAX_MICROSECOND_DECIMALS - parts))


def _nanoseconds_of_each_text(values: list[Any]) -> Ints:
    return np.array([_nanoseconds_of_text(bytes(value)) for value in values], np.int64)


def _nanoseconds_of_text(text: bytes) -> int:
    if text.isdigit() and len(text) <= _MAX_DIGITS_OF_64_BIT_INTEGER:
        whole = int(text) * 1000
        return whole if whole <= _MAX_INT64 else NO_INT
    try:
        microseconds = Decimal(text.decode("ascii").strip('" '))
    except (UnicodeDecodeError, InvalidOperation):
        return NO_INT
    if not microseconds.is_finite() or microseconds.adjusted() > _MAX_DIGITS_OF_WHOLE_MICROSECONDS:
        return NO_INT
    with localcontext() as context:
        context.prec = max(len(text), _MAX_DIGITS_OF_WHOLE_MICROSECONDS) + _MAX_MICROSECOND_DECIMALS
        whole = int(
            microseconds.scaleb(_MAX_MICROSECOND_DECIMALS).to_integral_value(ROUND_HALF_EVEN)
        )
    return whole if abs(whole) <= _MAX_INT64 else NO_INT
