"""Steps told by what the program does over and over, where nothing marks them.

A loop shows in what its rounds begin or end with: a batch is loaded, inputs are copied to the
device, results are read back. Such events cut the operators of a thread into stretches. They are
steps only if every stretch runs the same operators as often, and if what lies before the first and
after the last is a piece of such a stretch. Layers of a network are alike too, but a network begins
and ends with other operators.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.arrays import Ints
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

_LEAST_ROUNDS: Final = 3
"""Two whole rounds may be alike by chance."""
_ALIKE: Final = 0.8
"""Each round shares at least this much of its operators with the average round."""
_PIECE: Final = 0.9
"""So much of what lies at the ends is found in a round too."""
_LONG: Final = 0.5
"""Events within this share of the long stretches of each other belong to one round."""
_LEAST_OPERATORS: Final = 4
"""A round of fewer operators, on average, has nothing to be alike in."""
_THREADS: Final = 4
"""Steps are looked for on so many threads, those with most slices first."""


def recurring_steps(trace: Trace, host: pl.DataFrame) -> pl.DataFrame | None:
    """Steps between events that recur: columns number, start, end (ns), cut, mark, track.

    None where nothing recurs without a doubt. `host` are the host slices whose end is known.
    """
    busy = host.group_by("track").len().sort("len", "track", descending=[True, False])
    events = _events(trace, host)
    for track in busy["track"][:_THREADS]:
        row = _Row(trace, host.filter(pl.col("track") == track))
        for kind, ids in events.items():
            steps = row.steps(ids, is_loading=kind == "loading")
            if steps is not None:
                return steps
    return None


def _events(trace: Trace, host: pl.DataFrame) -> dict[str, pl.Series]:
    """Slices on the host at which a round may begin, by kind, the surest first."""
    copies = slices_on(trace, "device").filter(pl.col("launch").is_not_null())
    return {
        "loading": filter_by_name(host, names.is_data_loading)["id"],
        "upload": filter_by_name(copies, names.is_upload)["launch"].unique(),
        "download": filter_by_name(copies, names.is_download)["launch"].unique(),
    }


class _Row:
    """The operators of a thread that lie in no other, in order of time."""

    def __init__(self, trace: Trace, host: pl.DataFrame) -> None:
        self.trace = trace
        self.host = host
        marks = host["category"].is_in(list(names.ANNOTATIONS))
        works = ~marks | host["id"].is_in(
            filter_by_name(host, names.is_data_loading)["id"].implode()
        )
        above = np.zeros(trace.slices.height, bool)
        above[host.filter(works)["id"].to_numpy()] = True
        parent = host["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
        inside = (parent != NONE) & above[np.where(parent == NONE, 0, parent)]
        self.top = host.filter(works & ~pl.Series(inside)).sort("start")
        self.what = _what_runs(trace, self.top)
        self.works = above

    def steps(self, events: pl.Series, *, is_loading: bool) -> pl.DataFrame | None:
        at = self._places(events)
        if at.size > _LEAST_ROUNDS:
            at = _first_after_long(at)
        if at.size < _LEAST_ROUNDS or (at.size < _LEAST_ROUNDS + 1 and not is_loading):
            return None
        likeness, pieces = self._likeness(at)
        whole = likeness[1:-1]
        if not whole.size or whole.min() < _ALIKE:
            return None
        if not is_loading and min(pieces[0], pieces[-1]) < _PIECE:
            return None
        return self._table(at, likeness)

    def _places(self, events: pl.Series) -> Ints:
        """The places in the row of what holds the events, each once."""
        place = np.full(self.trace.slices.height, NONE, np.int64)
        place[self.top["id"].to_numpy()] = np.arange(self.top.height)
        parent = parents(self.trace)
        own = events.cast(pl.Int64).to_numpy()
        own = own[np.isin(own, self.host["id"].to_numpy())]
        holder = nearest(parent, place != NONE, own)
        return np.unique(place[holder[holder != NONE]])

    def _likeness(self, at: Ints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of what lies before, between and after the events.

        First the operators that a stretch shares with the average round, of all that either has;
        then of those that the stretch has. One for a stretch without any.
        """
        stretch = np.searchsorted(at, np.arange(self.top.height), side="right")
        counts = pl.DataFrame({"stretch": stretch, "what": self.what}).group_by("stretch", "what")
        own = counts.len().with_columns(pl.col("len").cast(pl.Float64))
        rounds = at.size - 1
        within = own.filter(pl.col("stretch").is_between(1, rounds))
        usual = within.group_by("what").agg(usual=pl.col("len").sum() / rounds)
        size = float(usual["usual"].sum())
        if size < _LEAST_OPERATORS:
            return np.zeros(at.size + 1), np.zeros(at.size + 1)
        told = (
            own.join(usual, on="what", how="left")
            .group_by("stretch")
            .agg(
                has=pl.col("len").sum(),
                shared=pl.min_horizontal("len", pl.col("usual").fill_null(0)).sum(),
            )
        )
        has, shared = np.zeros(at.size + 1), np.zeros(at.size + 1)
        has[told["stretch"].to_numpy()] = told["has"].to_numpy()
        shared[told["stretch"].to_numpy()] = told["shared"].to_numpy()
        pieces = np.divide(shared, has, out=np.ones(at.size + 1), where=has > 0)
        return shared / (has + size - shared), pieces

    def _table(self, at: Ints, likeness: NDArray[np.float64]) -> pl.DataFrame:
        """The rounds, with what lies before the first, if anything does, and the last as cut."""
        start = self.top["start"].to_numpy()
        low = self.host["start"].to_numpy().min()
        high = (self.host["start"] + self.host["duration"]).to_numpy().max()
        begins = start[at]
        cut: list[str | None] = [None] * at.size
        if likeness[-1] < _ALIKE:
            cut[-1] = "the recording ended within it"
        ends = np.append(begins[1:], high)
        if at[0] > 0:
            begins, ends = np.append(low, begins), np.append(begins[0], ends)
            cut = ["it began before", *cut]
        first = str(self.top["name"].cast(pl.String)[int(at[0])])
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


def _first_after_long(at: Ints) -> Ints:
    """Of events close to each other the first: those that follow a long stretch."""
    stretches = np.diff(at)
    long = _LONG * float(np.quantile(stretches, 0.9))
    return np.asarray(at[np.append(True, stretches >= long)])


def _what_runs(trace: Trace, top: pl.DataFrame) -> pl.Series:
    """What tells a slice from others: its name; for a call that launched a kernel, the kernel's."""
    calls = top.filter(pl.col("category").is_in(list(names.CALLS)))["id"]
    launched = (
        slices_on(trace, "device")
        .filter(pl.col("launch").is_in(calls.implode()))
        .select(id="launch", kernel=pl.col("name").cast(pl.String))
        .unique("id", keep="first", maintain_order=True)
    )
    told = top.select("id", pl.col("name").cast(pl.String)).join(
        launched, on="id", how="left", maintain_order="left"
    )
    return told.select(pl.coalesce("kernel", "name")).to_series()
