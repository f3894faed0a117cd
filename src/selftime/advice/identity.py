"""What a finding is called, so that it can be asked for alone, today and tomorrow."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Final

from selftime.advice.answer import Advice, Joint
from selftime.advice.base import Finding
from selftime.advice.registry import FORMER_NAMES
from selftime.errors import UsageError

_DIGITS: Final = 6
"""Hexadecimal digits of an id, unless two findings of a rule would have the same."""
_SHOWN: Final = 60
"""Characters of a wrong id that are told."""
_MOST_NAMED: Final = 8
"""Ids that an error lists."""


def place_of(finding: Finding) -> tuple[str, str, int, str]:
    """What tells a finding from all others: its rule and line; its title where no line is known."""
    where = finding.where
    if where.file is None or where.line is None:
        return finding.rule, where.file or "", 0, finding.title
    return finding.rule, where.file, where.line, ""


def identified(findings: Iterable[Finding]) -> list[Finding]:
    """The findings with their ids: the rule, and some digits of a hash of the place.

    The same trace gives the same ids, whatever else is found and wherever it lies.
    """
    listed = list(findings)
    whole = [_digest(finding) for finding in listed]
    digits = _DIGITS
    while len({digest[:digits] for digest in whole}) < len(set(whole)):
        digits += 1
    return [
        replace(finding, id=f"{finding.rule}-{digest[:digits]}")
        for finding, digest in zip(listed, whole, strict=True)
    ]


def _digest(finding: Finding) -> str:
    place = "\0".join(map(str, place_of(finding)))
    return sha256(place.encode("utf-8", "surrogatepass")).hexdigest()


def chosen(advice: Advice, word: str) -> Advice:
    """The answer with nothing in it but one finding, or what one rule found or checked.

    Args:
        advice: The whole answer.
        word: The id of a finding, or the name of a rule.

    Raises:
        UsageError: The answer has neither.
    """
    word = _of_today(advice, word)
    found = tuple(one for one in advice.findings if word in (one.id, one.rule))
    checked = tuple(one for one in advice.checked if one.rule == word)
    unknown = tuple(one for one in advice.unknown if one.rule == word)
    if not (found or checked or unknown):
        raise UsageError(
            f"there is no finding and no rule `{word[:_SHOWN]}` in this answer; {_known(advice)}"
        )
    joint = Joint()
    if len(found) == 1:
        joint = Joint(found[0].saving.estimate_ms, found[0].saving.speedup)
    return replace(advice, findings=found, joint=joint, checked=checked, unknown=unknown)


def _of_today(advice: Advice, word: str) -> str:
    """The name of a rule or the id of a finding, where the rule was called otherwise before."""
    rule, _, digits = word.partition("-")
    today = FORMER_NAMES.get(rule)
    if today is None or not digits:
        return today or word
    former = (one for one in advice.findings if one.rule == today)
    ids = (one.id for one in former if _digest(replace(one, rule=rule)).startswith(digits))
    return next(ids, word)


def _known(advice: Advice) -> str:
    ids = [one.id for one in advice.findings]
    if not ids:
        return "it has no finding, and `selftime explain` lists the rules"
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"its findings are {', '.join(ids[:_MOST_NAMED])}{more}"
