"""Convert times from microseconds, as a trace writes them, to integer nanoseconds without loss.

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

from selftime.arrays import Ints
from selftime.ingest.events.event import NO_INT

EXACT_BELOW: Final = 2.0**43
"""Microseconds below which a double with three decimals is exact."""


_MOST: Final = 2**63 - 1
_NEWLINE, _DOT, _ZERO = 10, 46, 48
_DECIMALS: Final = 3
_WHOLE: Final = 16
_LONGEST: Final = 20  # digits of any integer of 64 bits
_TOO_LARGE: Final = 9  # as the first of sixteen digits of microseconds: perhaps beyond 2**63 ns
_NANOSECONDS_FROM: Final = 10**16
"""The year 2286 in microseconds since the epoch: a larger number is in nanoseconds."""


class InexactError(ValueError):
    """A double cannot hold this time exactly: its text must be read."""


def nanoseconds(values: list[Any]) -> Ints:
    """Returns nanoseconds from microseconds as floats or text; `NO_INT` where there is none.

    >>> nanoseconds([0.001, float("nan")])[0], nanoseconds([b"1712217600000000.123"])[0]
    (np.int64(1), np.int64(1712217600000000123))
    """
    if not values:
        return np.empty(0, np.int64)
    if isinstance(values[0], float):
        return _from_floats(np.array(values, np.float64))
    text = b"\n".join(values) + b"\n"
    found = _from_text(text)
    return _one_by_one(values) if found is None else found


def nanoseconds_and_unit(values: list[Any]) -> tuple[Ints, NDArray[np.bool_] | None]:
    """Returns the same as `nanoseconds`, and which were written in integer ns (None if none).

    Raises:
        InexactError: A float is larger than `EXACT_BELOW`.

    >>> nanoseconds_and_unit([b"1712217600000000123", b"1712217600000000.123"])[0].tolist()
    [1712217600000000123, 1712217600000000123]
    """
    if values and isinstance(values[0], float):
        times = np.array(values, np.float64)
        if (np.abs(times) >= EXACT_BELOW).any():
            raise InexactError
        return _from_floats(times), None
    found = nanoseconds(values)
    unknown = np.flatnonzero(found == NO_INT)
    if not unknown.size:
        return found, None
    written = np.zeros(found.size, bool)
    for at in unknown.tolist():
        text = bytes(values[at]).strip(b'" ')
        is_whole = text.isdigit() and len(text) <= _LONGEST
        if is_whole and _NANOSECONDS_FROM <= int(text) <= _MOST:
            found[at], written[at] = int(text), True
    return (found, written) if written.any() else (found, None)


def _from_floats(microseconds: NDArray[np.float64]) -> Ints:
    known = np.abs(microseconds) < _MOST // 1000
    whole, part = np.divmod(np.where(known, microseconds, 0.0), 1.0)
    exact = whole.astype(np.int64) * 1000 + np.rint(part * 1000).astype(np.int64)
    return np.where(known, exact, NO_INT)


def _from_text(text: bytes) -> Ints | None:
    """Returns the times of lines; lines of equal length and point are converted together.

    Returns None if a line is not a plain decimal of at most three decimals that fits 63 bits in ns.
    """
    if text.translate(None, b"0123456789.\n"):
        return None
    marks = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(marks == _NEWLINE)
    begins = np.append(0, ends[:-1] + 1)
    lengths = ends - begins
    longest, shortest = int(lengths.max()), int(lengths.min())
    if not 0 < shortest <= longest <= _WHOLE + 1 + _DECIMALS:
        return None
    if shortest == longest:
        return _from_rows(marks.reshape(-1, longest + 1)[:, :-1])
    found = np.empty(ends.size, np.int64)
    for length in np.unique(lengths).tolist():
        lines = np.flatnonzero(lengths == length)
        times = _from_rows(marks[begins[lines, None] + np.arange(length)])
        if times is None:
            return None
        found[lines] = times
    return found


def _from_rows(rows: NDArray[np.uint8]) -> Ints | None:
    """Returns the times of lines of equal length; None if one is malformed."""
    dots = rows == _DOT
    count = int(dots.sum())
    first = int(dots[0].argmax()) if dots[0].any() else rows.shape[1]
    if count == (rows.shape[0] if first < rows.shape[1] else 0) and dots[:, first:][:, :1].all():
        return _from_digits(rows, first)
    places = np.where(dots.any(axis=1), dots.argmax(axis=1), rows.shape[1])
    if count > (places < rows.shape[1]).sum():
        return None
    found = np.empty(rows.shape[0], np.int64)
    for point in np.unique(places).tolist():
        alike = np.flatnonzero(places == point)
        values = _from_digits(rows[alike], point)
        if values is None:
            return None
        found[alike] = values
    return found


def _from_digits(rows: NDArray[np.uint8], point: int) -> Ints | None:
    """Returns the times of lines with the point at one column; at the length if without."""
    length = rows.shape[1]
    parts = max(length - point - 1, 0)
    too_large = point == _WHOLE and bool((rows[:, 0] >= _ZERO + _TOO_LARGE).any())
    if not 0 < point <= _WHOLE or parts > _DECIMALS or too_large:
        return None
    total = np.zeros(rows.shape[0], np.int64)
    for column in range(length):
        if column != point:
            total *= 10
            total += rows[:, column] - np.uint8(_ZERO)
    return np.asarray(total * 10 ** (_DECIMALS - parts))


def _one_by_one(values: list[Any]) -> Ints:
    return np.array([_exact(bytes(value)) for value in values], np.int64)


def _exact(text: bytes) -> int:
    if text.isdigit() and len(text) <= _LONGEST:
        whole = int(text) * 1000
        return whole if whole <= _MOST else NO_INT
    try:
        microseconds = Decimal(text.decode("ascii").strip('" '))
    except (UnicodeDecodeError, InvalidOperation):
        return NO_INT
    if not microseconds.is_finite() or microseconds.adjusted() > _WHOLE:
        return NO_INT
    with localcontext() as context:
        context.prec = max(len(text), _WHOLE) + _DECIMALS
        whole = int(microseconds.scaleb(_DECIMALS).to_integral_value(ROUND_HALF_EVEN))
    return whole if abs(whole) <= _MOST else NO_INT
