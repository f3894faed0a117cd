"""Whether a file is one recording of one process, or several in one."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.units import count_text
from selftime.views.accounts.trust.checks import Check, examples
from selftime.views.accounts.trust.recording import Recording

__all__ = ["ranks", "twice"]

_REMEDY: Final = "give one file per rank"
_SHOWN: Final = 8


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
