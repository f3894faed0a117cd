"""Shares as a command is given them: `5%` or `0.05`."""

from math import isfinite

from selftime.errors import UsageError


def share(option: str, text: str) -> float:
    """The share that an option names; a UsageError if it is none."""
    number, percent, rest = text.partition("%")
    try:
        found = float(number) / (100 if percent else 1)
    except ValueError:
        found = -1.0
    if rest or not (isfinite(found) and found >= 0):
        raise UsageError(f"`{option} {text[:40]}`: write a share such as `5%` or `0.05`")
    return found
