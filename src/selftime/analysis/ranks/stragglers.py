"""Which rank makes the others wait, why, and on which line; and where that cannot be told.

A rank is named only if it comes later than the others by more than what varies from round to round
explains, by more than the clocks are apart, and by enough to matter.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.ranks.lateness import FEWEST, middle_of_others, rounds
from selftime.analysis.ranks.ranks import Rank, Ranks, joined_ranks
from selftime.analysis.ranks.time_before import CAUSES
from selftime.analysis.sites import SITE
from selftime.analysis.students_t import above_zero

_CHANCE: Final = 0.01
"""That any rank of a job is named where all are alike."""
_MATTERS: Final = 0.01
"""Of a step: less is not worth a name."""
_RESIDUALS: Final = 4
"""Lateness below this many residual errors of the clocks may be theirs."""
_EXPLAINS: Final = 0.25
"""A cause has to explain this share of the lateness."""
_SAME_WORK: Final = 0.8
"""Share of the time in kernels that all ranks run as often, for their speed to be compared."""
_ALIKE: Final = 0.5
"""Every such kernel is slower by at least this share of what they are on the whole."""
_WHY: Final = {
    "compute": "it has more to compute",
    "clocks": "it runs the same kernels, and each of them more slowly",
    "gc": "Python collects garbage on it for longer",
    "data": "its batches come later",
    "host": "its host takes longer between its work",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of one rank. Times in ns a round."""

    key: int
    late: float | None = None
    """By how much it came later than the others, as `rounds` has it, on average; None if that is
    not known."""
    beyond: float | None = None
    """Of that: by more than the middle of the others is late itself. A claim rests on this: where
    arrivals vary, every rank comes late to some collective of a step."""
    is_straggler: bool = False
    why_not: str | None = None
    """Why no claim is made."""
    cause: str | None = None
    """One of `CAUSES`, or `clocks` if the same kernels are slower; None if none explains it."""
    more: float | None = None
    """How much more it spends on that cause than the others."""
    line: dict[str, Any] | None = None
    """Where it spends more than the others: the columns of a site, and more, in ns a round."""
    work: str | None = None
    """The kernel or operator on which it spends more."""

    @property
    def why(self) -> str:
        """What makes a straggler late, as a clause."""
        return "no single cause explains it" if self.cause is None else _WHY[self.cause]

    @property
    def sentence(self) -> str:
        """What is claimed, or why nothing is."""
        if not self.is_straggler:
            return f"no claim: {self.why_not}"
        return f"it makes the others wait: {self.why}"


@cached_per_trace
def straggler_verdicts(ranks: Ranks) -> list[Verdict]:
    """One for each rank, in order of their keys."""
    table, every = rounds(ranks), ranks.by_key()
    others = middle_of_others(table, "late", ("round",)).clip(lower_bound=0)
    table = table.with_columns(beyond=pl.col("late") - others)
    of = {int(own["rank"][0]): own for own in table.partition_by("rank", maintain_order=True)}
    return [
        _verdict(key, ranks, every, of[key]) if key in of else Verdict(key, why_not=_unknown(every))
        for key in every
    ]


def _verdict(key: int, ranks: Ranks, every: dict[int, Rank], own: pl.DataFrame) -> Verdict:
    beyond = own["beyond"]
    late, more_late = (float(own[name].mean() or 0) for name in ("late", "beyond"))  # type: ignore[arg-type]  # numbers
    if own.height < FEWEST:
        told = (
            f"{own.height} step{'' if own.height == 1 else 's'}: too few to tell; record {FEWEST}"
        )
        return Verdict(key, late, more_late, why_not=told)
    doubt = _doubt(beyond.to_numpy(), more_late, ranks, every)
    if doubt is not None:
        return Verdict(key, late, more_late, why_not=doubt)
    cause, more = _cause(own, more_late)
    if cause == "compute" and _is_slower(key, every):
        cause = "clocks"
    line, work = _line(key, every, cause), _work(key, every) if cause == "compute" else None
    found = Verdict(key, late, more_late, is_straggler=True, cause=cause, more=more)
    return replace(found, line=line, work=work)


def _unknown(every: dict[int, Rank]) -> str:
    if len(every) < 2:
        return "one rank's trace does not tell who waits for whom: give those of others too"
    if not any(rank.part.rows.height for rank in every.values()):
        return "no collective is recorded"
    return "nothing brings its clock together with those of the others"


def _doubt(
    beyond: NDArray[np.float64], late: float, ranks: Ranks, every: dict[int, Rank]
) -> str | None:
    """Why it is not to be called a straggler, if so."""
    if late <= 0:
        return "it comes no later than the others"
    if above_zero(beyond) * len(every) > _CHANCE:
        return "its lateness is within its step-to-step variation"
    residual = joined_ranks(ranks).clocks.residual or 0
    if late < _RESIDUALS * residual:
        return "the clocks are not known as exactly"
    if late < _MATTERS * _step(every):
        return f"it is less than {_MATTERS:.0%} of a step"
    return None


def _step(every: dict[int, Rank]) -> float:
    """The middle of the ranks' median times of a step, in ns; 0 if none is known."""
    times = [
        float(np.median(counted["time"].to_numpy()))
        for rank in every.values()
        if (counted := rank.part.steps.filter("counted")).height
    ]
    return float(np.median(times)) if times else 0.0


def _cause(rows: pl.DataFrame, late: float) -> tuple[str | None, float | None]:
    """The cause of which it has surely more than the others, if that explains the lateness."""
    found: list[tuple[float, str]] = []
    for cause in CAUSES:
        each = rows[f"more_{cause}"].drop_nulls().to_numpy()
        if each.size >= FEWEST and above_zero(each) * len(CAUSES) <= _CHANCE:
            found.append((float(each.mean()), cause))
    if not found:
        return None, None
    more, most = max(found)
    return (most, more) if more >= _EXPLAINS * late else (None, None)


def _against_others(
    key: int, every: dict[int, Rank], name: str, on: tuple[str, ...]
) -> pl.DataFrame | None:
    """A rank's table beside the median of the other ranks', per step; what one has not is 0."""

    def per_step(rank: Rank) -> pl.DataFrame:
        table: pl.DataFrame = getattr(rank.part, name)
        steps = max(rank.part.steps["counted"].sum(), 1)
        numbers = [column for column in table.columns if column not in on]
        return table.with_columns(pl.col(numbers) / steps)

    own = per_step(every[key])
    rest = [per_step(rank) for other, rank in every.items() if other != key]
    rest = [table for table in rest if table.height]
    if not own.height or not rest:
        return None
    numbers = [column for column in own.columns if column not in on]
    middle = (
        pl.concat(rest)
        .group_by(on)
        .agg(
            pl.col(column).extend_constant(0.0, len(rest) - pl.len()).median() for column in numbers
        )
    )
    both = own.join(middle, on=list(on), how="left", suffix="_others", nulls_equal=True)
    return both.with_columns(pl.col([f"{column}_others" for column in numbers]).fill_null(0))


def _line(key: int, every: dict[int, Rank], cause: str | None) -> dict[str, Any] | None:
    """The line on which the rank spends most more than the others do."""
    both = _against_others(key, every, "lines", SITE)
    if both is None:
        return None
    on_device = cause in {"compute", "clocks"} and bool(both["device_time"].sum())
    column = "device_time" if on_device else "self_cpu_time"
    more = (pl.col(column) - pl.col(f"{column}_others")).alias("more")
    top = both.select(*SITE, more).sort("more", *SITE, descending=[True, *[False] * len(SITE)])
    found = top.row(0, named=True)
    return found if found["more"] > 0 else None


def _work(key: int, every: dict[int, Rank]) -> str | None:
    both = _against_others(key, every, "work", ("name",))
    if both is None:
        return None
    top = both.sort(pl.col("time") - pl.col("time_others"), "name", descending=[True, False])
    return str(top["name"][0]) if top["time"][0] > top["time_others"][0] else None


def _is_slower(key: int, every: dict[int, Rank]) -> bool:
    """Whether it runs the same kernels as the others, as often, and each of them more slowly."""
    both = _against_others(key, every, "work", ("name",))
    if both is None:
        return False
    same = both.filter((pl.col("count") == pl.col("count_others")) & (pl.col("time_others") > 0))
    whole, time = float(both["time"].sum()), float(same["time"].sum())
    if not same.height or time < _SAME_WORK * whole:
        return False
    slower = time / float(same["time_others"].sum()) - 1
    each = same["time"] / same["time_others"] - 1
    alike = float(same.filter(each >= _ALIKE * slower)["time"].sum())
    return slower > 0 and alike >= _SAME_WORK * time
