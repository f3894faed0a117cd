"""Writes the progress of a job in the JSON form `selftime.watch/1` (docs/formats.md)."""

import json
from typing import Any, Final

from selftime.analysis.progress.job_progress import JobProgress, RankState
from selftime.analysis.progress.slow_ranks import SlowRank
from selftime.rank_progress import Activity
from selftime.reports.watch.sentences import steps_per_second

FORMAT: Final = "selftime.watch/1"


def as_json(job: JobProgress, *, now_ns: int, unread: dict[str, str]) -> str:
    """Returns the progress of a job as one line of JSON."""
    state = "waiting" if not job.ranks else "ended" if job.is_over else "running"
    document = {
        "format": FORMAT,
        "time_ns": now_ns,
        "state": state,
        "world_size": job.world_size,
        "ranks": [_rank(one) for one in job.ranks],
        "missing": list(job.missing),
        "slow": [_slow_rank(one) for one in job.slow.ranks],
        "cannot_tell": job.slow.cannot_tell,
        "unread": [{"path": path, "reason": reason} for path, reason in sorted(unread.items())],
    }
    return json.dumps(document, allow_nan=False) + "\n"


def _rank(one: RankState) -> dict[str, Any]:
    progress = one.progress
    return {
        "rank": progress.rank,
        "process": progress.process,
        "ledger": progress.source,
        "state": one.state.value,
        "status": progress.status,
        "steps": progress.steps,
        "step_ms": None if one.step_ns is None else one.step_ns / 1e6,
        "steps_per_s": steps_per_second(progress),
        "steps_ahead": one.steps_ahead,
        "late_ms": None if one.late_ns is None else one.late_ns / 1e6,
        "part": None if progress.activity is None else progress.activity.part,
        "where": _where(progress.activity),
        "standing_s": progress.standing_ns / 1e9,
        "unseen_s": one.unseen_ns / 1e9,
    }


def _slow_rank(one: SlowRank) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "process": one.process,
        "excess_ms": one.excess_ns / 1e6,
        "where": _where(one.activity),
    }


def _where(activity: Activity | None) -> dict[str, Any] | None:
    if activity is None or activity.file is None:
        return None
    return {
        "file": activity.file,
        "line": activity.line,
        "function": activity.function,
        "how": "stack",
    }
