"""Writes the account of the step: what bounds it, its largest classes, rows, what is unexplained.

Every time and share is one of the advice's JSON, or the sum of some of them.
"""

from dataclasses import replace
from typing import Final

from selftime.advice.account.account_rows import (
    AccountPart,
    AccountRow,
    StepAccount,
    time_of_rows_ms,
)
from selftime.advice.account.job_account import (
    GroupCommunication,
    JobAccount,
    JobAccountRow,
    LateRank,
)
from selftime.advice.advice_result import Advice
from selftime.analysis.account.step_bounds import bound_by_phrase
from selftime.analysis.ranks.communication_groups import MESSAGES
from selftime.reports.advice.account_places import (
    HOST_COMPUTING,
    UNRECORDED_PHRASES,
    Place,
    is_same_place,
    is_unrecorded,
    place_at,
    place_of,
    place_text,
    row_texts,
)
from selftime.reports.labels import TIME_CLASS_LABELS
from selftime.reports.plain import plain
from selftime.units import milliseconds_text, whole_percent_text

_MIN_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step of a class that the sentence names."""
_MAX_PARTS: Final = 4
"""Largest number of classes that the sentence names."""
_SHARE_OF_MOST: Final = 0.5
"""Share of a class's time from which a line or operator is told to take most of it."""
_SHARE_OF_NEARLY_ALL: Final = 0.9
"""Share of a class's time from which a line or operator stands for the class."""
_MAX_DIFFERENCE_WITHOUT_BASIS: Final = 0.02
"""Largest difference, as a share of the step's time, between the time that is divided and the times
in the line on the step, for the sentence not to say what it divides."""
_MIN_SHOWN_SHARE: Final = 0.005
"""Smallest share of the step that is not rounded to 0 %."""
_MAX_UNEXPLAINED_ROWS: Final = 3
"""Largest number of unexplained rows that are named, largest first."""


def account_sentence(advice: Advice, root: str | None = None) -> str | None:
    """Returns the step's time, what bounds it, and its largest classes; None without an account.

    Paths of files below `root` are relative to it.
    """
    account = advice.account
    if account is None or not account.rows:
        return None
    whole = f"{milliseconds_text(account.step_ms)} a step{account_basis_text(advice)}"
    return f"{whole}, bound by {bound_by_text(account)}: {spent_text(account, root)}"


def spent_text(account: StepAccount, root: str | None = None) -> str:
    """Returns the largest classes of the account, and for how much of the step a device works."""
    return f"{largest_parts_text(account, root)}{_device_text(account)}"


def _device_text(account: StepAccount) -> str:
    """Returns for how much of the step devices work, to follow the parts; empty if unknown.

    It is told with the communication beside which no device computes, where that is much.
    """
    if account.device is None:
        return ""
    busy_ms, communication_ms = account.device.busy_ms, account.device.communication_ms
    alone = ""
    if communication_ms >= _MIN_SHARE_OF_STEP * account.step_ms:
        alone = f", {_time_in_step_text(communication_ms, account)} of it in communication alone"
    return f"; the device works for {_time_in_step_text(busy_ms, account)}{alone}"


def _time_in_step_text(ms: float, account: StepAccount) -> str:
    share = min(ms / account.step_ms, 1.0)
    return f"{milliseconds_text(ms)} ({whole_percent_text(share)})"


def largest_parts_text(account: StepAccount, root: str | None = None) -> str:
    """Returns the largest classes of the account with their lines, separated by commas."""
    parts = [part for part in account.parts if part.share >= _MIN_SHARE_OF_STEP][:_MAX_PARTS]
    return ", ".join(f"{time_text(part)} {_part_phrase(account, part, root)}" for part in parts)


def bound_by_text(account: StepAccount) -> str:
    """Returns what bounds the step, to follow `bound by`."""
    return bound_by_phrase(account.bound_by)


def account_basis_text(advice: Advice) -> str:
    """Returns a text on the time that is divided; empty if the line on the step shows that time.

    That line shows recorded medians. The account is of the mean, and of the time in which no
    earlier step was at work on the device.
    """
    account, step = advice.account, advice.step
    if account is None:
        return ""
    shown = [time for time in (step.host_ms, step.device_ms) if time is not None]
    if account.basis == "unrecorded" or not shown:
        return " without recording" if account.basis == "unrecorded" else ", recorded in part"
    limit = _MAX_DIFFERENCE_WITHOUT_BASIS
    if any(abs(account.step_ms - time) <= limit * time for time in shown):
        return ""
    if account.steps > 1:
        return f", the mean of {account.steps} steps"
    if all(account.step_ms > time for time in shown):
        return ", until the device's work ended"
    return ", since the device's work of earlier steps ended"


def time_text(time: AccountPart | AccountRow) -> str:
    """Returns a time with its share of the step, such as `179 ms (82 %)`."""
    return f"{milliseconds_text(time.ms)} ({whole_percent_text(time.share)})"


def _part_phrase(account: StepAccount, part: AccountPart, root: str | None) -> str:
    """Returns the words for the time of a part: what it was, and where most of it was spent."""
    rows = account.rows_of_part(part)
    phrase = TIME_CLASS_LABELS[part.time_class].phrase
    if time_of_rows_ms(tuple(row for row in rows if is_unrecorded(row))) * 2 > part.ms:
        phrase = UNRECORDED_PHRASES[part.time_class]
    if time_of_rows_ms(tuple(row for row in rows if row.computes_on_host)) * 2 > part.ms:
        phrase = HOST_COMPUTING
    if part.optimizer is not None:
        return f"{phrase} in the optimizer `{plain(part.optimizer)}`"
    if time_of_rows_ms(tuple(row for row in rows if row.is_initialisation)) * 2 > part.ms:
        phrase = f"{phrase} for the first time"
    place, share = _main_place(rows)
    if place is None or share < _SHARE_OF_MOST:
        return phrase
    is_communication = part.time_class == "communication"
    where = place_text(place, root, with_name=is_communication)
    if share < _SHARE_OF_NEARLY_ALL:
        return f"{phrase}, most{where}"
    return where.strip() if is_communication and place.what is not None else f"{phrase}{where}"


def _main_place(rows: tuple[AccountRow, ...]) -> tuple[Place | None, float]:
    """Returns the line or name with the most time of some rows, and its share of their time.

    A line has a name if that takes at least half of the line's time.
    """
    times: dict[Place, int] = {}
    for row in rows:
        place = place_of(row)
        if place.file is not None or place.what is not None:
            known = next((one for one in times if is_same_place(one, place)), place)
            times[known] = times.get(known, 0) + row.ns
    if not times:
        return None, 0.0
    largest = max(times, key=lambda place: times[place])
    named = sum(
        row.ns for row in rows if is_same_place(place_of(row), largest) and row.what == largest.what
    )
    shown = largest if named * 2 >= times[largest] else replace(largest, what=None)
    return shown, times[largest] / max(sum(row.ns for row in rows), 1)


def kind_sentences(account: StepAccount, root: str | None = None) -> list[str]:
    """Returns a sentence on each kind of step: how many, the mean time, what bounds it, on what.

    Empty if all steps are alike.
    """
    return [
        f"{kind.name} ({kind.account.steps} step{'' if kind.account.steps == 1 else 's'}): "
        f"{milliseconds_text(kind.account.step_ms)} a step, bound by {bound_by_text(kind.account)}"
        f": {largest_parts_text(kind.account, root)}"
        for kind in account.kinds
    ]


_WORDS_OF_GROUP: Final = {
    None: "exchanges of unknown groups",
    MESSAGES: "messages between two ranks",
    "all": "exchanges of all ranks",
    "TP": "tensor parallelism",
    "CP": "context parallelism",
    "PP": "pipeline parallelism",
    "EP": "expert parallelism",
    "DP": "data parallelism",
}
"""Maps what a process group is for to words."""


def job_sentence(job: JobAccount, root: str | None = None) -> str:
    """Returns what a step of all ranks is spent on, with the range, and which rank decides."""
    told = (
        f"{milliseconds_text(job.step_ms)} a recorded step, the mean of {job.ranks} ranks: "
        f"{job_parts_text(job)}"
    )
    sentences = [told, communication_text(job)]
    if job.late is not None:
        sentences.append(late_rank_text(job.late, root))
    return ". ".join(sentence for sentence in sentences if sentence)


def communication_text(job: JobAccount) -> str:
    """Returns what a job's communication is for, and how much of it is a wait; empty if little."""
    shown = [one for one in job.communication if one.share >= _MIN_SHARE_OF_STEP][:_MAX_PARTS]
    parts = [
        f"{milliseconds_text(one.ms)} in {_group_text(one)}{_waiting_text(one)}" for one in shown
    ]
    return f"Communication: {', '.join(parts)}" if parts else ""


def _group_text(one: GroupCommunication) -> str:
    return _WORDS_OF_GROUP.get(one.group) or f"the group `{one.group}`"


def _waiting_text(one: GroupCommunication) -> str:
    """Returns how much is a wait for ranks that come later, in brackets; empty if hardly any."""
    share = one.waiting_ms / one.ms if one.ms else 0.0
    if share < _MIN_SHARE_OF_STEP:
        return ""
    return f" ({whole_percent_text(share)} of it waiting for ranks that come later)"


def job_parts_text(job: JobAccount) -> str:
    """Returns the largest classes of a job's step, each with its range over the ranks."""
    shown = [row for row in job.rows if row.share >= _MIN_SHARE_OF_STEP][:_MAX_PARTS]
    return ", ".join(
        f"{milliseconds_text(row.ms)} ({whole_percent_text(row.share)}) "
        f"{TIME_CLASS_LABELS[row.time_class].phrase}{_range_of_ranks(row)}"
        for row in shown
    )


def late_rank_text(late: LateRank, root: str | None = None) -> str:
    """Returns which rank the others wait for, why, and at which line."""
    where = place_text(place_at(late.where, None), root, with_name=False)
    return f"{late.rank} makes the others wait: {late.why}{where}"


def _range_of_ranks(row: JobAccountRow) -> str:
    """Returns the least and the most time of a rank in brackets; empty if they are alike."""
    low, high = milliseconds_text(row.low_ms), milliseconds_text(row.high_ms)
    return "" if low == high else f" ({low} on {row.low_rank} to {high} on {row.high_rank})"


def account_totals_text(account: StepAccount, *, as_times: bool = False) -> str:
    """Returns how much of the step has each verdict: shares, or times with `as_times`."""
    parts = [
        (account.found_ms, "in findings"),
        (account.needed_ms, "needed"),
        (account.small_ms, "small"),
        (account.unexplained_ms, "unexplained"),
    ]
    shown = [(ms, words) for ms, words in parts if ms >= _MIN_SHOWN_SHARE * account.step_ms]
    return ", ".join(
        f"{milliseconds_text(ms) if as_times else whole_percent_text(ms / account.step_ms)} {words}"
        for ms, words in shown
    )


def unexplained_texts(account: StepAccount, root: str | None = None) -> list[str]:
    """Returns the largest unexplained rows as sentences: time, line, and what would tell.

    Rows of which the same would tell are one sentence.
    """
    texts: dict[str, list[str]] = {}
    rows = account.rows_with_verdict("unexplained")[:_MAX_UNEXPLAINED_ROWS]
    for row, text in zip(rows, row_texts(rows, root), strict=True):
        texts.setdefault(row.text, []).append(f"{time_text(row)} {text}")
    return [f"{', '.join(places)}: {reason}" for reason, places in texts.items()]
