"""Finds which rank makes the others wait, why, and on which source line, or why that is unknown.

A rank is only reported if its lateness exceeds what the variation between rounds explains, the
differences of the clocks, and a minimum that matters.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.excess_time import (
    kernel_with_most_excess_time,
    line_with_most_excess_time,
    runs_same_kernels_slower,
)
from selftime.analysis.ranks.job_imbalance import JobImbalance, job_imbalance
from selftime.analysis.ranks.job_ranks import RankOfJob, Ranks, collectives_on_one_clock
from selftime.analysis.ranks.lateness import (
    MIN_ROUNDS_TO_JUDGE_LATENESS,
    median_of_other_rows_in_group,
    rank_lateness_by_round,
)
from selftime.analysis.ranks.rank_summary import LATENESS_CAUSES
from selftime.analysis.students_t import one_sided_t_test_p_value
from selftime.units import whole_percent_text

_MAX_FALSE_REPORT_PROBABILITY: Final = 0.01
"""Largest accepted probability that any rank is reported in a job whose ranks are all equally fast.
"""
_MIN_LATENESS_SHARE_OF_STEP: Final = 0.01
"""Smallest lateness of a rank that is reported, as a share (0 to 1) of the step time."""
_MIN_LATENESS_IN_CLOCK_ERRORS: Final = 4
"""Smallest lateness that is reported, in multiples of the clocks' residual error."""
_MIN_EXPLAINED_SHARE_OF_LATENESS: Final = 0.25
"""Smallest share (0 to 1) of a rank's lateness that a cause must explain to be reported."""
_MIN_SHARE_OF_TOKENS: Final = 1.1
"""Smallest ratio of the bytes of a rank's all-to-alls to those of others that counts as more."""
_CLAUSE_BY_LATENESS_CAUSE: Final = {
    "compute": "it has more to compute",
    "clocks": "it runs the same kernels, and each of them more slowly",
    "experts": "all-to-alls bring it more data",
    "gc": "Python collects garbage on it for longer",
    "data": "its batches come later",
    "host": "its host code takes longer",
}
"""Maps a cause of lateness to the clause that explains it to the user."""


@dataclass(frozen=True, slots=True)
class StragglerVerdict:
    """Verdict on whether a rank makes other ranks wait, and why; times in ns per step."""

    key: int
    late_ns: float | None = None
    """How much later than the other ranks the rank comes to collectives, on average, in ns per
    step; None if unknown.
    """
    late_beyond_others_ns: float | None = None
    """By how much the rank's lateness exceeds the lateness of the median rank, in ns per step; None
    if unknown. The verdict is based on this figure.
    """
    is_straggler: bool = False
    reason_not_straggler: str | None = None
    """Why the rank is not called a straggler; None if it is called one."""
    cause: str | None = None
    """Why the rank is late: one of `LATENESS_CAUSES`, `clocks` if it runs the same kernels slower,
    or `experts` if it gets more data in all-to-alls; None if nothing explains it.
    """
    excess_ns: float | None = None
    """How much more time than the other ranks the rank spends on `cause`, in ns per step; None if
    unknown.
    """
    source_line: dict[str, Any] | None = None
    """The source line on which the rank spends more time than the other ranks: file, line,
    function, how, and `more` in ns per step.
    """
    kernel_or_operator: str | None = None
    """The kernel or operator on which the rank spends more time than the other ranks; None if
    unknown.
    """

    @property
    def why(self) -> str:
        """Why a straggling rank is late, as a clause."""
        return (
            "no single cause explains it"
            if self.cause is None
            else _CLAUSE_BY_LATENESS_CAUSE[self.cause]
        )

    @property
    def sentence(self) -> str:
        """The statement that the rank makes other ranks wait, or the reason not to claim it."""
        if not self.is_straggler:
            return f"no claim: {self.reason_not_straggler}"
        return f"it makes the others wait: {self.why}"


@cached_per_trace
def straggler_verdicts(ranks: Ranks) -> list[StragglerVerdict]:
    """Returns for each rank, in order of key, whether it makes other ranks wait, and why."""
    table, every = rank_lateness_by_round(ranks), ranks.ranks_by_key()
    imbalance = job_imbalance(ranks)
    if imbalance is not None and imbalance.stage_of_rank:
        return [_verdict_in_pipeline(key, every, imbalance) for key in every]
    others = median_of_other_rows_in_group(table, "late", ("round",)).clip(lower_bound=0)
    table = table.with_columns(late_beyond_others=pl.col("late") - others)
    of = {int(own["rank"][0]): own for own in table.partition_by("rank", maintain_order=True)}
    return [
        _straggler_verdict_of_rank(key, ranks, every, of[key])
        if key in of
        else StragglerVerdict(key, reason_not_straggler=_reason_for_unknown_lateness(every))
        for key in every
    ]


def _verdict_in_pipeline(
    key: int, ranks_by_key: dict[int, RankOfJob], imbalance: JobImbalance
) -> StragglerVerdict:
    """Returns whether a rank of a pipeline is slow, compared with the ranks of its own stage.

    Who comes late to a collective tells nothing here: a stage waits for the one before it.
    """
    recorded = imbalance.recorded
    lost = (
        recorded.longer_than(imbalance.without_rank[key])[1]
        if key in imbalance.without_rank
        else 0.0
    )
    alike = [
        rank for rank, at in imbalance.stage_of_rank.items() if at == imbalance.stage_of_rank[key]
    ]
    if len(alike) < 2:
        told = "no other rank computes its stage of the pipeline"
        return StragglerVerdict(key, reason_not_straggler=told)
    if (
        key not in imbalance.slow_ranks
        or lost < _MIN_LATENESS_SHARE_OF_STEP * _typical_step_time_ns(ranks_by_key)
    ):
        told = "its work takes about as long as that of the other ranks of its stage"
        return StragglerVerdict(key, lost, lost, reason_not_straggler=told)
    peers = {rank: ranks_by_key[rank] for rank in alike}
    cause = "compute" if imbalance.is_device_slower(key) else "host"
    if cause == "compute" and runs_same_kernels_slower(key, peers):
        cause = "clocks"
    found = StragglerVerdict(key, lost, lost, is_straggler=True, cause=cause, excess_ns=lost)
    return replace(
        found,
        source_line=line_with_most_excess_time(key, peers, cause),
        kernel_or_operator=kernel_with_most_excess_time(key, peers) if cause == "compute" else None,
    )


def _straggler_verdict_of_rank(
    key: int, ranks: Ranks, ranks_by_key: dict[int, RankOfJob], rounds: pl.DataFrame
) -> StragglerVerdict:
    beyond = rounds["late_beyond_others"]
    late, more_late = (float(rounds[name].mean() or 0) for name in ("late", "late_beyond_others"))  # type: ignore[arg-type]  # numbers
    if rounds.height < MIN_ROUNDS_TO_JUDGE_LATENESS:
        steps = f"{rounds.height} step{'' if rounds.height == 1 else 's'}"
        told = (
            f"{steps}: too few to tell whether the rank is late; "
            f"record {MIN_ROUNDS_TO_JUDGE_LATENESS}"
        )
        return StragglerVerdict(key, late, more_late, reason_not_straggler=told)
    doubt = _reason_not_to_call_rank_straggler(beyond.to_numpy(), more_late, ranks, ranks_by_key)
    if doubt is not None:
        return StragglerVerdict(key, late, more_late, reason_not_straggler=doubt)
    cause, more = _main_cause_of_lateness(rounds, more_late)
    if cause == "compute" and share_of_tokens(key, ranks) >= _MIN_SHARE_OF_TOKENS:
        cause = "experts"
    elif cause == "compute" and runs_same_kernels_slower(key, ranks_by_key):
        cause = "clocks"
    line, work = (
        line_with_most_excess_time(key, ranks_by_key, cause),
        kernel_with_most_excess_time(key, ranks_by_key)
        if cause in {"compute", "experts"}
        else None,
    )
    found = StragglerVerdict(key, late, more_late, is_straggler=True, cause=cause, excess_ns=more)
    return replace(found, source_line=line, kernel_or_operator=work)


def share_of_tokens(key: int, ranks: Ranks) -> float:
    """Returns the bytes of a rank's all-to-alls, as a ratio to the median of the other ranks.

    Tokens go to their experts, and come back, in all-to-alls: of four in a step, of which two are
    those of the backward pass, two have the tokens that the rank's experts get as their input. 1
    without any.
    """
    rows = collectives_on_one_clock(ranks).rows.filter(pl.col("collective") == "alltoall")
    sizes = dict(rows.drop_nulls("bytes").group_by("rank").agg(pl.col("bytes").sum()).iter_rows())
    others = [size for rank, size in sizes.items() if rank != key]
    return float(sizes[key] / np.median(others)) if key in sizes and any(others) else 1.0


def _reason_for_unknown_lateness(ranks_by_key: dict[int, RankOfJob]) -> str:
    if len(ranks_by_key) < 2:
        return "one rank's trace does not show who waits for whom: give those of others too"
    if not any(rank.summary.collectives.height for rank in ranks_by_key.values()):
        return "no collective is recorded"
    return "its clock cannot be aligned with the clocks of the other ranks"


def _reason_not_to_call_rank_straggler(
    beyond: NDArray[np.float64], late: float, ranks: Ranks, ranks_by_key: dict[int, RankOfJob]
) -> str | None:
    """Returns why a rank is not called a straggler, or None if it is called one."""
    if late <= 0:
        return "it comes to collectives no later than the other ranks"
    if one_sided_t_test_p_value(beyond) * len(ranks_by_key) > _MAX_FALSE_REPORT_PROBABILITY:
        return "its lateness is within its step-to-step variation"
    residual = collectives_on_one_clock(ranks).clocks.residual or 0
    if late < _MIN_LATENESS_IN_CLOCK_ERRORS * residual:
        return "its lateness is too small for the accuracy of the clocks"
    if late < _MIN_LATENESS_SHARE_OF_STEP * _typical_step_time_ns(ranks_by_key):
        return (
            f"its lateness is less than {whole_percent_text(_MIN_LATENESS_SHARE_OF_STEP)} of a step"
        )
    return None


def _typical_step_time_ns(ranks_by_key: dict[int, RankOfJob]) -> float:
    """Returns the median of the ranks' median step times in ns; 0 if no rank has steps."""
    times = [
        float(np.median(counted["time"].to_numpy()))
        for rank in ranks_by_key.values()
        if (counted := rank.summary.steps.filter("counted")).height
    ]
    return float(np.median(times)) if times else 0.0


def _main_cause_of_lateness(rounds: pl.DataFrame, late: float) -> tuple[str | None, float | None]:
    """Returns the main cause of a rank's lateness and its ns per step; (None, None) if unknown.

    A rank that is late in all rounds is so by what it does more of in all rounds.
    """
    found: list[tuple[float, str]] = []
    for cause in LATENESS_CAUSES:
        each = rounds[f"more_{cause}"].drop_nulls().to_numpy()
        if each.size >= MIN_ROUNDS_TO_JUDGE_LATENESS and each.min() > 0:
            found.append((float(each.mean()), cause))
    if not found:
        return None, None
    more, most = max(found)
    return (most, more) if more >= _MIN_EXPLAINED_SHARE_OF_LATENESS * late else (None, None)
