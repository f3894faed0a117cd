"""The advice for a job: on what all ranks tell together, and on the trace of one of them."""

from pathlib import Path

from selftime.advice import Advice, advise
from selftime.advice.advise import spokesman
from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.errors import SelftimeError
from selftime.ingest.load import load
from selftime.trace import Job, Trace


def is_one_job(ranks: Ranks) -> bool:
    """Whether ranks do something together, so that one answer is for all of them."""
    rows = joined_ranks(ranks).rows
    return rows.height > 0 and bool(rows["match"].is_not_null().any())


def advise_ranks(ranks: Ranks, *, cache: bool = True) -> Advice:
    """What to change in the program of these ranks: reads the trace of the one that it is about.

    Args:
        ranks: As `survey` gives them.
        cache: Whether to use the tables of that trace that are kept.
    """
    path = spokesman(ranks)
    return advise(_one(path, cache=cache), ranks=ranks)


def _one(path: str, *, cache: bool) -> Trace:
    """The trace at a path; of a file that holds several, the one that the path's end counts."""
    file, _, number = path.rpartition("#")
    several = bool(file) and number.isdigit() and not Path(path).exists()
    found = load(file if several else path, cache=cache)
    if isinstance(found, Job):
        if path not in found.traces:
            raise SelftimeError(f"`{path}` no longer holds the trace that was read before")
        return found.traces[path]
    return found
