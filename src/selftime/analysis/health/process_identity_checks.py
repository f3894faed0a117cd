"""Checks whether a trace file holds one recording of one process, or a mix of several."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.health.recording_under_check import (
    HealthCheckResult,
    RecordingUnderCheck,
    example_slice_ids_text,
)
from selftime.analysis.ranks.rank_and_process_groups import rank_and_size
from selftime.units import count_text

_ADVICE_ONE_FILE_PER_RANK: Final = "give one file per rank"
_MAX_NAMED_RANKS: Final = 8


def check_device_descriptions(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Checks that the trace describes the devices that did work; peak rates need this."""
    trace = recording.trace
    if trace.events.height and recording.device_slices.height and not trace.devices.height:
        text = "the file does not describe its devices: their peak rates and sizes are unknown"
        yield HealthCheckResult(
            "devices_untold", "good", text, 0.0, "efficiency, occupancy, shares of memory"
        )


def check_rank_and_world_size(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Checks that header and file name agree on the rank, and that the world size is possible."""
    trace = recording.trace
    rank, size = rank_and_size(trace)
    told = trace.metadata.get("distributedInfo")
    written = trace.metadata.get("traceName")
    named = names.rank_of_process(written) if isinstance(written, str) else None
    if rank is not None and named is not None and named.isdigit() and int(named) != rank:
        text = f"the header says rank {rank}, the file name {named}"
        text = f"{text}: the rank in the header is used"
        yield HealthCheckResult("rank", "degraded", text, float(rank), "ranks, stragglers")
    if isinstance(told, dict) and told.get("world_size") is not None and size is None:
        text = "the file gives an impossible size of the job: the number of ranks is unknown"
        yield HealthCheckResult("world_size", "degraded", text, None, "ranks, scaling, collectives")


def check_time_origin(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Checks whether times have a known origin, which is needed to compare processes."""
    trace = recording.trace
    if trace.events.height and trace.origin is None and rank_and_size(trace).rank is not None:
        text = "the date of the trace's time zero is unknown: only time differences have a meaning"
        yield HealthCheckResult(
            "zero", "good", text, 0.0, "ranks: they are aligned by collectives alone"
        )


def check_ranks_mixed_in_one_file(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports several ranks in one file, and processes that use the same correlation numbers."""
    tracks = recording.trace.tracks
    told = {
        rank: own
        for process, own in tracks.select("process", "id").rows()
        if (rank := names.rank_of_process(process)) is not None
    }
    if len(told) > 1:
        shown = ", ".join(sorted(told)[:_MAX_NAMED_RANKS]) + (
            ", …" if len(told) > _MAX_NAMED_RANKS else ""
        )
        text = f"{len(told)} ranks in one file ({shown}), whose steps and devices mix"
        text = f"{text}: {_ADVICE_ONE_FILE_PER_RANK}"
        yield HealthCheckResult(
            "ranks", "unusable", text, float(len(told)), "everything but kernels"
        )
        return
    shared = _calls_sharing_correlation_numbers(recording)
    places = shared.join(tracks, left_on="track", right_on="id")
    if places["process"].n_unique() > 1:
        text = (
            f"{count_text(shared.height)} calls of {places['process'].n_unique()} processes share "
            f"correlation numbers: their files were merged; {_ADVICE_ONE_FILE_PER_RANK}"
        )
        ids = example_slice_ids_text(shared["id"])
        yield HealthCheckResult(
            "ranks", "unusable", text, float(shared.height), "everything but kernels", ids
        )


def check_calls_recorded_twice(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports calls that occur twice in the file, as when two profilers recorded them."""
    alike = ["correlation", "track", "start", "duration", "name"]
    shared = _calls_sharing_correlation_numbers(recording)
    found = shared.filter(shared.select(pl.struct(alike).is_duplicated()).to_series())
    if not found.height:
        return
    text = (
        f"{count_text(found.height)} calls are in the file twice: two profilers recorded at once, "
        "or one recording was written twice"
    )
    affects = "counts and sums of operators and kernels"
    yield HealthCheckResult(
        "twice", "degraded", text, float(found.height), affects, example_slice_ids_text(found["id"])
    )


def _calls_sharing_correlation_numbers(recording: RecordingUnderCheck) -> pl.DataFrame:
    """Returns calls that have the same correlation number as another call."""
    told = recording.trace.call_args
    number = told["correlation"].fill_null(0).to_numpy()
    told = told.filter(pl.Series(_is_repeated_number(number) & (number > 0)))
    return told.select("id", "correlation").join(recording.runtime_calls, on="id")


def _is_repeated_number(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flags the elements of an array whose number occurs more than once."""
    ordered = np.sort(numbers)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return np.isin(numbers, repeated)
