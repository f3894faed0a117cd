"""Says in words how the ranks of a job are, and what cannot be told of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from selftime.analysis.progress.job_progress import JobProgress, RankState, State
from selftime.analysis.progress.slow_ranks import SlowRank
from selftime.rank_progress import Activity, RankProgress
from selftime.reports.advice.wording import file_and_line_text
from selftime.reports.hang.phrases import ranks_text
from selftime.reports.plain import plain
from selftime.units import count_text, range_text, seconds_text, time_text

_MAX_NAMED: Final = 3
"""Largest number of slow ranks, or of files that cannot be read, that are named."""
_MIN_STANDING_NS: Final = 2_000_000_000
_PARTS: Final = {
    "imports": "importing",
    "checkpoint": "in a checkpoint",
    "logging": "logging",
    "processes": "awaiting processes",
}
"""What a stack that is not of the user's own code shows, in words."""


def steps_per_second(progress: RankProgress) -> float | None:
    """Returns how many steps a rank makes in a second, by its latest ones; None if unknown."""
    ends = progress.step_ends_ns[-65:]
    if len(ends) < 2 or ends[-1] <= ends[0]:
        return None
    return (len(ends) - 1) * 1e9 / float(ends[-1] - ends[0])


def headline(job: JobProgress) -> str:
    """Returns how many ranks run, the step they are at and what a step takes."""
    if not job.ranks:
        return "no rank has made a step so far"
    states = Counter(one.state for one in job.ranks)
    texts = [_running_text(job, states[State.runs] + states[State.records])]
    texts += [
        f"{count_text(states[state])} {words}"
        for state, words in (
            (State.silent, "not seen"),
            (State.gone, "killed"),
            (State.ended, "ended"),
        )
        if states[state]
    ]
    steps = sorted(one.progress.steps for one in job.ranks)
    texts.append(f"step {_range(steps, count_text)}")
    times = sorted(one.step_ns for one in job.ranks if one.step_ns is not None)
    if times:
        texts.append(f"{_range(times, time_text)} a step")
    return ", ".join(texts)


def _running_text(job: JobProgress, running: int) -> str:
    """Returns how many of the ranks run; of a program without ranks, of its processes."""
    if all(one.progress.rank is None for one in job.ranks):
        return "1 process runs" if running == 1 else f"{count_text(running)} processes run"
    world = job.world_size or len(job.ranks)
    noun, verb = "rank" if world == 1 else "ranks", "runs" if running == 1 else "run"
    return f"{count_text(running)} of {count_text(world)} {noun} {verb}"


def notes(job: JobProgress, unread: Mapping[str, str], root: str | None) -> Iterator[str]:
    """Yields sentences on slow and missing ranks, and on what cannot be told or read."""
    if len(job.ranks) > 1:
        yield slow_sentence(job, root)
    if job.missing and job.ranks:
        have = "has" if len(job.missing) == 1 else "have"
        yield f"{_capitalised(ranks_text(job.missing))} {have} no ledger: no step was made there."
    for path, reason in sorted(unread.items())[:_MAX_NAMED]:
        yield f"`{plain(PurePath(path).name)}` is left out: {plain(reason)}."
    if len(unread) > _MAX_NAMED:
        yield f"{count_text(len(unread) - _MAX_NAMED)} more files are left out."


def slow_sentence(job: JobProgress, root: str | None) -> str:
    """Returns which ranks are slow by their own work, or why that cannot be told."""
    slow = job.slow
    if slow.cannot_tell is not None:
        return f"Which ranks are slow cannot be told from ledgers: {slow.cannot_tell}."
    if not slow.ranks:
        return "No rank is slow by its own work."
    named = "; ".join(_slow_text(one, root) for one in slow.ranks[:_MAX_NAMED])
    more = slow.ranks[_MAX_NAMED:]
    rest = ""
    if more:
        numbers = [one.rank for one in more if one.rank is not None]
        rest = f"; and {ranks_text(numbers) if numbers else f'{len(more)} more'}"
    return f"Slow by own work: {named}{rest}."


def _slow_text(one: SlowRank, root: str | None) -> str:
    at = f", most at {activity_text(one.activity, root)}" if one.activity is not None else ""
    return f"{rank_text(one.rank, one.process)}, by {time_text(one.excess_ns)} a step{at}"


def state_text(one: RankState) -> str:
    """Returns where a rank is now, or since when it was not seen, or how it ended.

    Of a file it has the name alone: it is for a cell of a table.
    """
    progress = one.progress
    if one.state is State.ended:
        return plain(progress.status or "ended")
    where = "" if progress.activity is None else activity_text(_short(progress.activity))
    if one.state is State.gone:
        return f"killed, last at {where}" if where else "killed"
    if one.state is State.silent:
        told = f"not seen for {seconds_text(one.unseen_ns)}"
        return f"{told}, last at {where}" if where else told
    if one.state is State.records:
        return "is being recorded"
    if progress.standing_ns >= _MIN_STANDING_NS:
        return f"{seconds_text(progress.standing_ns)} {where}"
    return where


def rest_text(rest: Sequence[RankState]) -> str:
    """Returns what is to be said of ranks that have no row of their own."""
    states = Counter(one.state for one in rest)
    words = {State.runs: "run", State.records: "are being recorded", State.silent: "are not seen"}
    words |= {State.gone: "were killed", State.ended: "ended"}
    told = [f"{count_text(states[state])} {word}" for state, word in words.items() if states[state]]
    ahead = sorted(one.steps_ahead for one in rest)
    told.append(f"{_range(ahead, _signed)} steps from the median")
    times = sorted(one.step_ns for one in rest if one.step_ns is not None)
    if times:
        told.append(f"{_range(times, time_text)} a step")
    return f"and {count_text(len(rest))} more: {', '.join(told)}"


def _short(activity: Activity) -> Activity:
    """Returns an activity with the name of its file alone, without its folders."""
    file = activity.file
    return activity if file is None else activity._replace(file=PurePath(file).name or file)


def activity_text(activity: Activity, root: str | None = None) -> str:
    """Returns the line of an activity and its function, and what it is if not the user's code."""
    what = _PARTS.get(activity.part, "")
    if activity.file is None:
        return what
    place = file_and_line_text(activity.file, activity.line, root)
    function = f" in {plain(activity.function)}" if activity.function else ""
    return f"{what} at {place}" if what else f"{place}{function}"


def rank_text(rank: int | None, process: int | None) -> str:
    """Returns a rank as text; a process that has none by its number."""
    return f"process {process}" if rank is None else f"rank {rank}"


def _range(ordered: Sequence[int], text: Callable[[int], str]) -> str:
    low, high = text(ordered[0]), text(ordered[-1])
    return low if low == high else range_text(low, high)


def _signed(count: int) -> str:
    return f"{count:+,}" if count else "0"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
