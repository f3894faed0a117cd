"""Finds steps by operations that recur in every loop iteration, where no annotations mark steps.

Each round of a loop begins or ends with the same events: a batch is loaded, inputs are copied to
the device, results are read back. Such events divide the operators of a thread into segments. The
segments are steps only if all of them run the same operators equally often, and if the operators
before the first and after the last are part of such a segment. Layers of a network are alike too,
but a network begins and ends with other operators.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

_MIN_RECURRING_EVENTS: Final = 3
"""Smallest number of recurring events that mark steps; two iterations may be alike by chance."""
_MIN_SIMILARITY_OF_LOOP_ROUNDS: Final = 0.8
"""Smallest share (0 to 1) of operators that each iteration has in common with the average one."""
_MIN_SHARE_OF_CONTAINED_OPERATORS: Final = 0.9
"""Smallest share (0 to 1) of the operators before the first and after the last iteration that must
also occur in an iteration.
"""
_MAX_EVENT_DISTANCE_SHARE_OF_ROUND: Final = 0.5
"""Largest distance between events of one iteration, as a share (0 to 1) of the iteration's length.
"""
_MIN_OPERATORS_PER_LOOP_ROUND: Final = 4
"""Smallest average number of operators in an iteration with which iterations are compared."""
_MAX_THREADS_SEARCHED_FOR_STEPS: Final = 4
"""Largest number of threads that are searched for steps; threads with the most slices come first.
"""


def recurring_steps(trace: Trace, host: pl.DataFrame) -> pl.DataFrame | None:
    """Returns steps that begin at recurring operations; None if no operation recurs.

    None if nothing recurs with certainty. `host` are the host slices whose end is known.
    """
    busy = host.group_by("track").len().sort("len", "track", descending=[True, False])
    events = _possible_loop_round_begins(trace, host)
    for track in busy["track"][:_MAX_THREADS_SEARCHED_FOR_STEPS]:
        row = _OperatorSequenceOfThread(trace, host.filter(pl.col("track") == track))
        for kind, ids in events.items():
            steps = row.steps_between_events(ids, is_loading=kind == "loading")
            if steps is not None:
                return steps
    return None


def _possible_loop_round_begins(trace: Trace, host: pl.DataFrame) -> dict[str, pl.Series]:
    """Returns ids of slices that may begin a loop iteration, by kind; most reliable kind first."""
    copies = slices_on(trace, "device").filter(pl.col("launch").is_not_null())
    return {
        "loading": filter_by_name(host, names.is_data_loading)["id"],
        "upload": filter_by_name(copies, names.is_host_to_device_copy)["launch"].unique(),
        "download": filter_by_name(copies, names.is_device_to_host_copy)["launch"].unique(),
    }


class _OperatorSequenceOfThread:
    """The outermost operators of a thread, in order of time."""

    def __init__(self, trace: Trace, host: pl.DataFrame) -> None:
        self.trace = trace
        self.host = host
        marks = host["category"].is_in(list(names.ANNOTATION_CATEGORIES))
        works = ~marks | host["id"].is_in(
            filter_by_name(host, names.is_data_loading)["id"].implode()
        )
        above = np.zeros(trace.slices.height, bool)
        above[host.filter(works)["id"].to_numpy()] = True
        parent = host["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
        inside = (parent != NO_SLICE) & above[np.where(parent == NO_SLICE, 0, parent)]
        self.top = host.filter(works & ~pl.Series(inside)).sort("start")
        self.what = _operator_or_kernel_names(trace, self.top)
        self.works = above

    def steps_between_events(
        self, event_ids: pl.Series, *, is_loading: bool
    ) -> pl.DataFrame | None:
        """Returns the steps between the given events; None if the steps are not similar."""
        at = self._positions_of_events(event_ids)
        if at.size > _MIN_RECURRING_EVENTS:
            at = _event_positions_after_long_segments(at)
        if at.size < _MIN_RECURRING_EVENTS or (
            at.size < _MIN_RECURRING_EVENTS + 1 and not is_loading
        ):
            return None
        likeness, pieces = self._similarities_of_segments(at)
        whole = likeness[1:-1]
        if not whole.size or whole.min() < _MIN_SIMILARITY_OF_LOOP_ROUNDS:
            return None
        if not is_loading and min(pieces[0], pieces[-1]) < _MIN_SHARE_OF_CONTAINED_OPERATORS:
            return None
        return self._steps_table(at, likeness)

    def _positions_of_events(self, event_ids: pl.Series) -> Ints:
        """Returns the distinct positions of the outermost operators that contain events."""
        place = np.full(self.trace.slices.height, NO_SLICE, np.int64)
        place[self.top["id"].to_numpy()] = np.arange(self.top.height)
        parent = parent_of_every_slice(self.trace)
        own = event_ids.cast(pl.Int64).to_numpy()
        own = own[np.isin(own, self.host["id"].to_numpy())]
        holder = nearest_ancestor(parent, place != NO_SLICE, own)
        return np.unique(place[holder[holder != NO_SLICE]])

    def _similarities_of_segments(
        self, positions: Ints
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns two similarities (0 to 1) of each segment between events to the average one.

        First the operators that a segment shares with the average round, relative to all operators
        of either; then relative to those of the segment. It is 1 for an empty segment.
        """
        stretch = np.searchsorted(positions, np.arange(self.top.height), side="right")
        counts = pl.DataFrame({"stretch": stretch, "what": self.what}).group_by("stretch", "what")
        own = counts.len().with_columns(pl.col("len").cast(pl.Float64))
        rounds = positions.size - 1
        within = own.filter(pl.col("stretch").is_between(1, rounds))
        usual = within.group_by("what").agg(usual=pl.col("len").sum() / rounds)
        size = float(usual["usual"].sum())
        if size < _MIN_OPERATORS_PER_LOOP_ROUND:
            return np.zeros(positions.size + 1), np.zeros(positions.size + 1)
        told = (
            own.join(usual, on="what", how="left")
            .group_by("stretch")
            .agg(
                has=pl.col("len").sum(),
                shared=pl.min_horizontal("len", pl.col("usual").fill_null(0)).sum(),
            )
        )
        has, shared = np.zeros(positions.size + 1), np.zeros(positions.size + 1)
        has[told["stretch"].to_numpy()] = told["has"].to_numpy()
        shared[told["stretch"].to_numpy()] = told["shared"].to_numpy()
        pieces = np.divide(shared, has, out=np.ones(positions.size + 1), where=has > 0)
        return shared / (has + size - shared), pieces

    def _steps_table(self, positions: Ints, similarities: NDArray[np.float64]) -> pl.DataFrame:
        """Returns loop iterations as steps; `cut` says what the first and the last step lack."""
        start = self.top["start"].to_numpy()
        low = self.host["start"].to_numpy().min()
        high = (self.host["start"] + self.host["duration"]).to_numpy().max()
        begins = start[positions]
        cut: list[str | None] = [None] * positions.size
        if similarities[-1] < _MIN_SIMILARITY_OF_LOOP_ROUNDS:
            cut[-1] = "the recording ended within it"
        ends = np.append(begins[1:], high)
        if positions[0] > 0:
            begins, ends = np.append(low, begins), np.append(begins[0], ends)
            cut = ["it began before", *cut]
        first = str(self.top["name"].cast(pl.String)[int(positions[0])])
        return pl.DataFrame(
            {
                "number": np.arange(begins.size),
                "start": begins,
                "end": ends,
                "cut": pl.Series(cut, dtype=pl.String),
                "mark": [first] * begins.size,
                "track": [self.top["track"][0]] * begins.size,
            }
        )


def _event_positions_after_long_segments(positions: Ints) -> Ints:
    """Returns the positions of events after a long distance, which begin an iteration each."""
    stretches = np.diff(positions)
    long = _MAX_EVENT_DISTANCE_SHARE_OF_ROUND * float(np.quantile(stretches, 0.9))
    return np.asarray(positions[np.append(True, stretches >= long)])


def _operator_or_kernel_names(trace: Trace, outermost: pl.DataFrame) -> pl.Series:
    """Returns the name of each slice, or of the kernel that the slice launched, if any."""
    calls = outermost.filter(pl.col("category").is_in(list(names.RUNTIME_CALL_CATEGORIES)))["id"]
    launched = (
        slices_on(trace, "device")
        .filter(pl.col("launch").is_in(calls.implode()))
        .select(id="launch", kernel=pl.col("name").cast(pl.String))
        .unique("id", keep="first", maintain_order=True)
    )
    told = outermost.select("id", pl.col("name").cast(pl.String)).join(
        launched, on="id", how="left", maintain_order="left"
    )
    return told.select(pl.coalesce("kernel", "name")).to_series()
