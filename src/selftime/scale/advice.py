"""Advice for a job, from all ranks together and the trace of one of them."""

from pathlib import Path

from selftime.advice import Advice, advise
from selftime.advice.advise import spokesman
from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.errors import SelftimeError
from selftime.ingest.load import load
from selftime.trace import Job, Trace


def is_one_job(ranks: Ranks) -> bool:
    """Returns whether the ranks communicate with each other, so that one advice covers all."""
    rows = joined_ranks(ranks).rows
    return rows.height > 0 and bool(rows["match"].is_not_null().any())


def advise_ranks(ranks: Ranks, *, cache: bool = True) -> Advice:
    """Returns the advice for these ranks; reads the trace of the rank that stands for all.

    Args:
        ranks: The result of `survey`.
        cache: Whether to use the cached tables of that trace.
    """
    path = spokesman(ranks)
    return advise(_load_one(path, cache=cache), ranks=ranks)


def _load_one(path: str, *, cache: bool) -> Trace:
    """Returns the trace at a path; of a file with several, the one numbered at the path's end."""
    file, _, number = path.rpartition("#")
    several = bool(file) and number.isdigit() and not Path(path).exists()
    found = load(file if several else path, cache=cache)
    if isinstance(found, Job):
        if path not in found.traces:
            raise SelftimeError(
                f"`{path}` no longer holds the trace that was read before: read the job again"
            )
        return found.traces[path]
    return found
