"""Finds when this process began, on the clock of `time.perf_counter_ns`."""

import os
import time
from contextlib import suppress
from pathlib import Path


def process_start_ns() -> int | None:
    """Returns the process's start in ns of `time.perf_counter_ns`; None if the system hides it.

    Linux states it in clock ticks (10 ms) since the machine's boot: field 22 of `/proc/PID/stat`.
    """
    with suppress(OSError, ValueError, IndexError, AttributeError):
        # The command's name, in brackets, may hold spaces and brackets itself.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        since_boot = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - since_boot
        return time.perf_counter_ns() - age
    return None
