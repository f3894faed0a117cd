"""Tells whether a process still runs, by its number."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_ENDED_STATES: Final = "ZXx"
"""States of a process that has ended and that its parent has not waited for."""


def still_runs(process: int, seen_at_s: float) -> bool:
    """Returns whether a process runs now that was seen to run before.

    Args:
        process: Its number.
        seen_at_s: When it was seen, in seconds since 1970. A process that began later has got the
            number after its end.
    """
    path = Path("/proc", str(process), "stat")
    if not path.parent.parent.joinpath("self").exists():  # not Linux
        return takes_signals(process)
    with suppress(OSError, ValueError, IndexError):
        # The command's name, in brackets, may hold spaces and brackets itself.
        fields = path.read_text().rpartition(")")[2].split()
        began_s = _boot_s() + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return fields[0] not in _ENDED_STATES and began_s <= seen_at_s + 1
    return False


def _boot_s() -> int:
    """Returns when the machine started, in seconds since 1970."""
    lines = Path("/proc/stat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("btime "))


def takes_signals(process: int) -> bool:
    """Returns whether there is a process of that number, whichever it is."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
