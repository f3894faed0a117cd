"""Computes advice for a job from summaries of all ranks and the full trace of one rank."""

from pathlib import Path

from selftime.advice import Advice, advise
from selftime.advice.advise import advised_trace_path
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.errors import SelftimeError
from selftime.ingest.load import load
from selftime.trace import Job, Trace


def do_ranks_communicate(ranks: Ranks) -> bool:
    """Returns whether ranks ran collectives together, so that they get one common advice."""
    rows = collectives_on_one_clock(ranks).rows
    return rows.height > 0 and bool(rows["match"].is_not_null().any())


def advice_for_ranks(ranks: Ranks, *, cache: bool = True) -> Advice:
    """Returns the advice for a job; reads the full trace of only one representative rank.

    Args:
        ranks: The result of `survey`.
        cache: Whether to use the cached tables of that trace.
    """
    path = advised_trace_path(ranks)
    return advise(_load_trace_of_rank(path, cache=cache), ranks=ranks)


def _load_trace_of_rank(path: str, *, cache: bool) -> Trace:
    """Loads the trace at a path; if its file holds several, the path ends in `#` and a number."""
    file, _, number = path.rpartition("#")
    has_several_traces = bool(file) and number.isdigit() and not Path(path).exists()
    loaded = load(file if has_several_traces else path, cache=cache)
    if isinstance(loaded, Job):
        if path not in loaded.traces:
            raise SelftimeError(
                f"`{path}` no longer holds the trace that was read before: read the job again"
            )
        return loaded.traces[path]
    return loaded
