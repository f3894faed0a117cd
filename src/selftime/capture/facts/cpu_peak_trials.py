"""Measures what this CPU can do with the threads of the program, once the program has ended.

That is done in the program's own process, or in a new one where that has gone.

The trials take about a fifth of a second: products of matrices by dtype, and copies of memory. Of
each the quickest run counts, by the time for which the calling thread had a core, so that another
program's work beside it matters little. Nothing is measured where little memory is free, where
several threads would have to share their cores with other programs, as they wait for each other
then, or where the trials take many times as long.
"""

import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import torch

from selftime.capture.facts.free_memory import free_memory_bytes
from selftime.capture.facts.settings import bfloat16_instruction_set
from selftime.capture.profiler.user_warnings import take_warnings
from selftime.devices import CpuPeakRates
from selftime.units import bytes_text

TRIAL_SECONDS: Final = 0.01
"""Time in s for which a trial is repeated."""

MIN_RUNS: Final = 3
"""Smallest number of runs of a trial, of which the quickest counts."""

PRODUCT_SIZES: Final = (256, 512, 1024, 2048)
"""Rows and columns of the square matrices that are multiplied; larger ones occupy more threads."""

LONG_PRODUCT_SECONDS: Final = 1e-3
"""Time in s of a product from which no larger one is tried: it occupies all threads."""

COPY_BYTES: Final = (1 << 18, 1 << 21, 1 << 24, 1 << 26)
"""Bytes that copies move, read and written: in the nearest caches, in the last ones, beyond."""

MAX_SECONDS: Final = 5.0
"""Longest time in s for all trials: no further one begins then."""

MIN_FREE_BYTES: Final = 1 << 30
"""Smallest memory in bytes that must be free; the trials take a tenth of it."""

MIN_SHARE_OF_TIME_ON_CORE: Final = 0.5
"""Smallest share of the trials' time in which one of several threads must have had a core."""

COARSE_RESOLUTION_SECONDS: Final = 1e-6
"""Resolution in s of a thread's clock from which the clock of the machine times the runs."""


class TrialsFailed(Exception):  # noqa: N818 - says what happened
    """Raised if the CPU could not be measured; the text says why."""


def cpu_peak_facts() -> dict[str, Any]:
    """Returns, as JSON values, what this CPU can do now, or why that is not known."""
    try:
        return {"cpu_peaks": measured_cpu_peak_rates().as_json()}
    except TrialsFailed as failure:
        return {"cpu_peaks": None, "cpu_peaks_unknown": str(failure)}


def main(words: list[str]) -> None:
    """Writes what the CPU can do with so many threads to stdout, as a line of JSON."""
    torch.set_num_threads(int(words[0]))
    sys.stdout.write(f"{json.dumps(cpu_peak_facts())}\n")


def measured_cpu_peak_rates() -> CpuPeakRates:
    """Returns the rates of products of matrices and of copies that this CPU reaches now.

    Raises:
        TrialsFailed: Memory is short, other programs took cores of the threads, the trials take too
            long, or torch failed.
    """
    free = free_memory_bytes()
    if free is not None and free < MIN_FREE_BYTES:
        raise TrialsFailed(f"only {bytes_text(free)} of memory are free")
    began, began_on_core = time.perf_counter(), time.thread_time()
    until = began + MAX_SECONDS
    try:
        with take_warnings(), torch.no_grad(), torch.autocast("cpu", enabled=False):
            operations = {
                str(dtype).removeprefix("torch."): _rate_of_products(dtype, until)
                for dtype in _dtypes_to_measure()
            }
            copies = tuple((size, _rate_of_copies(size, until)) for size in COPY_BYTES)
    except (RuntimeError, TypeError, ValueError, AttributeError, MemoryError) as error:
        # The program may have left torch in any state, such as within a mode of its own.
        raise TrialsFailed(f"{type(error).__name__}: {error}") from error
    wall = time.perf_counter() - began
    threads = torch.get_num_threads()
    if threads > 1 and time.thread_time() - began_on_core < MIN_SHARE_OF_TIME_ON_CORE * wall:
        raise TrialsFailed("other programs took the cores meanwhile")
    return CpuPeakRates(threads, MappingProxyType(operations), copies)


def _dtypes_to_measure() -> list[torch.dtype]:
    """Returns the dtypes that this CPU multiplies by instructions of its own, as far as known."""
    dtypes = [torch.float32, torch.float64]
    return [*dtypes, torch.bfloat16] if bfloat16_instruction_set() else dtypes


def _rate_of_products(dtype: torch.dtype, until: float) -> float:
    """Returns the operations per second of the product of matrices that reaches most."""
    best = 0.0
    for size in PRODUCT_SIZES:
        factor = torch.ones(size, size, dtype=dtype, device="cpu")
        product = torch.empty(size, size, dtype=dtype, device="cpu")
        seconds = _least_seconds(lambda a=factor, c=product: torch.mm(a, a, out=c), until)  # type: ignore[misc]  # its arguments have defaults
        best = max(best, 2.0 * size**3 / seconds)
        if seconds >= LONG_PRODUCT_SECONDS:
            break
    return best


def _rate_of_copies(moved: int, until: float) -> float:
    """Returns the bytes per second, read and written, of a copy that moves so many bytes."""
    source = torch.ones(moved // 8, dtype=torch.float32, device="cpu")
    target = torch.empty_like(source)
    return moved / _least_seconds(lambda: target.copy_(source), until)


def _least_seconds(trial: Callable[[], object], until: float) -> float:
    """Returns the time in s of the quickest of a trial's runs, the first left out.

    It is the time for which the calling thread had a core.

    Raises:
        TrialsFailed: It is later than `until`, of `time.perf_counter`, before the last run.
    """
    resolution = time.get_clock_info("thread_time").resolution
    clock = time.thread_time if resolution < COARSE_RESOLUTION_SECONDS else time.perf_counter
    trial()
    instants = [clock()]
    while len(instants) <= MIN_RUNS or instants[-1] - instants[0] < TRIAL_SECONDS:
        if time.perf_counter() > until:
            raise TrialsFailed(f"the trials took longer than {MAX_SECONDS:.0f} s")
        trial()
        instants.append(clock())
    return min(later - earlier for earlier, later in pairwise(instants))
