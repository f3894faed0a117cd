"""Whether a file is one recording of one process, or several in one."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.health.checks import Check, examples
from selftime.analysis.health.recording import Recording
from selftime.analysis.ranks.membership import place
from selftime.units import count_text

_REMEDY: Final = "give one file per rank"
_SHOWN: Final = 8


def described(recording: Recording) -> Iterator[Check]:
    """Whether the devices that worked are described: their peaks follow from that."""
    trace = recording.trace
    if trace.events.height and recording.device.height and not trace.devices.height:
        text = "the file does not describe its devices: their peaks and sizes are not known"
        yield Check("devices_untold", "good", text, 0.0, "efficiency, occupancy, shares of memory")


def job(recording: Recording) -> Iterator[Check]:
    """Whether what tells the rank agrees, and whether the size of the job can be."""
    trace = recording.trace
    rank, size = place(trace)
    told = trace.metadata.get("distributedInfo")
    written = trace.metadata.get("traceName")
    named = names.rank_of_process(written) if isinstance(written, str) else None
    if rank is not None and named is not None and named.isdigit() and int(named) != rank:
        text = f"the header tells rank {rank}, the name that it was written under {named}"
        text = f"{text}: the header holds"
        yield Check("rank", "degraded", text, float(rank), "ranks, stragglers")
    if isinstance(told, dict) and told.get("world_size") is not None and size is None:
        text = "the size of the job that the file tells cannot be: it is not known"
        yield Check("world_size", "degraded", text, None, "ranks, scaling, exchanges")


def zero(recording: Recording) -> Iterator[Check]:
    """Whether times count from a known instant: else those of two processes cannot be compared."""
    trace = recording.trace
    if trace.events.height and trace.origin is None and place(trace).rank is not None:
        text = "times count from an unknown zero, such as the machine's start: relative times only"
        yield Check("zero", "good", text, 0.0, "ranks: they are aligned by collectives alone")


def ranks(recording: Recording) -> Iterator[Check]:
    """Processes that a merging tool gave ranks; and calls of several processes with one number."""
    tracks = recording.trace.tracks
    told = {
        rank: own
        for process, own in tracks.select("process", "id").rows()
        if (rank := names.rank_of_process(process)) is not None
    }
    if len(told) > 1:
        shown = ", ".join(sorted(told)[:_SHOWN]) + (", …" if len(told) > _SHOWN else "")
        text = f"{len(told)} ranks in one file ({shown}), whose steps and devices mix: {_REMEDY}"
        yield Check("ranks", "unusable", text, float(len(told)), "everything but kernels")
        return
    shared = _shared(recording)
    places = shared.join(tracks, left_on="track", right_on="id")
    if places["process"].n_unique() > 1:
        text = (
            f"{count_text(shared.height)} calls of {places['process'].n_unique()} processes have "
            f"numbers of each other's: their files were merged; {_REMEDY}"
        )
        ids = examples(shared["id"])
        yield Check("ranks", "unusable", text, float(shared.height), "everything but kernels", ids)


def twice(recording: Recording) -> Iterator[Check]:
    """Calls that are in the file twice, to the nanosecond: two profilers recorded them."""
    alike = ["correlation", "track", "start", "duration", "name"]
    shared = _shared(recording)
    found = shared.filter(shared.select(pl.struct(alike).is_duplicated()).to_series())
    if not found.height:
        return
    text = (
        f"{count_text(found.height)} calls are in the file twice: two profilers recorded at once, "
        "or one recording was written twice"
    )
    affects = "counts and sums of operators and kernels"
    yield Check("twice", "degraded", text, float(found.height), affects, examples(found["id"]))


def _shared(recording: Recording) -> pl.DataFrame:
    """Calls whose correlation another call has too."""
    told = recording.trace.call_args
    number = told["correlation"].fill_null(0).to_numpy()
    told = told.filter(pl.Series(_is_repeated(number) & (number > 0)))
    return told.select("id", "correlation").join(recording.calls, on="id")


def _is_repeated(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which numbers another place has too."""
    ordered = np.sort(numbers)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return np.isin(numbers, repeated)
