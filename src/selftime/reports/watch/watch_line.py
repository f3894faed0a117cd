"""Writes the progress of a job as a line, for where no terminal shows it in place."""

from datetime import datetime
from typing import Final

from selftime.analysis.progress.job_progress import JobProgress
from selftime.reports.watch.sentences import headline, slow_sentence

_NS_PER_S: Final = 1_000_000_000


def as_line(job: JobProgress, *, now_ns: int, root: str | None = None) -> str:
    """Returns time of day, the number of ranks that run, their steps, and which are slow."""
    clock = datetime.fromtimestamp(now_ns // _NS_PER_S).astimezone().strftime("%H:%M:%S")
    told = f"{clock}  {headline(job)}"
    is_known = len(job.ranks) > 1 and job.slow.cannot_tell is None
    return f"{told}. {slow_sentence(job, root)}\n" if is_known else f"{told}\n"
