"""Gives findings ids, which select them in `advise --finding`; ids are stable between runs."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Final

from selftime.advice.advice_result import Advice, JointSaving
from selftime.advice.rule_definition import Finding
from selftime.advice.rule_registry import CURRENT_NAMES_OF_RENAMED_RULES
from selftime.advice.savings.finding_overlap import joint_saving_of_single_fix
from selftime.errors import UsageError

_FINDING_ID_DIGITS: Final = 6
"""Number of hexadecimal digits in a finding's id; more if two findings would share an id."""
_MAX_QUOTED_ID_CHARACTERS: Final = 60
"""Largest number of characters of an unknown id that an error message quotes."""
_MAX_IDS_IN_MESSAGE: Final = 8
"""Largest number of ids that an error message lists."""


def finding_identity(finding: Finding) -> tuple[str, str, int, str]:
    """Returns the rule, file and line that identify a finding; its title if it has no line."""
    where = finding.where
    if where.file is None or where.line is None:
        return finding.rule, where.file or "", 0, finding.title
    return finding.rule, where.file, where.line, ""


def with_finding_ids(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings with ids: the rule's name and digits of a hash of rule and line.

    The same trace gives the same ids, whatever else is found and wherever its file is.
    """
    listed = list(findings)
    whole = [_sha256_of_finding_identity(finding) for finding in listed]
    digits = _FINDING_ID_DIGITS
    while len({digest[:digits] for digest in whole}) < len(set(whole)):
        digits += 1
    return [
        replace(finding, id=f"{finding.rule}-{digest[:digits]}")
        for finding, digest in zip(listed, whole, strict=True)
    ]


def _sha256_of_finding_identity(finding: Finding) -> str:
    place = "\0".join(map(str, finding_identity(finding)))
    return sha256(place.encode("utf-8", "surrogatepass")).hexdigest()


def select_findings(advice: Advice, name_or_id: str) -> Advice:
    """Returns the advice limited to one finding or one rule.

    Args:
        advice: The whole advice.
        name_or_id: The name of a rule, or the id of a finding.

    Raises:
        UsageError: The advice has no such finding and no such rule.
    """
    name_or_id = _current_rule_name_or_finding_id(advice, name_or_id)
    found = tuple(one for one in advice.findings if name_or_id in (one.id, one.rule))
    checked = tuple(one for one in advice.checked if one.rule == name_or_id)
    unknown = tuple(one for one in advice.unknown if one.rule == name_or_id)
    if not (found or checked or unknown):
        raise UsageError(
            f"there is no finding and no rule `{name_or_id[:_MAX_QUOTED_ID_CHARACTERS]}` in this "
            f"answer; {_available_finding_ids_text(advice)}"
        )
    joint = joint_saving_of_single_fix(found[0]) if len(found) == 1 else JointSaving()
    return replace(
        advice,
        findings=found,
        joint=joint,
        checked=checked,
        unknown=unknown,
        selected_rule_or_finding=name_or_id,
    )


def _current_rule_name_or_finding_id(advice: Advice, name_or_id: str) -> str:
    """Returns a rule name or finding id, with a former rule name replaced by the current one."""
    rule, _, digits = name_or_id.partition("-")
    today = CURRENT_NAMES_OF_RENAMED_RULES.get(rule)
    if today is None or not digits:
        return today or name_or_id
    former = (one for one in advice.findings if one.rule == today)
    ids = (
        one.id
        for one in former
        if _sha256_of_finding_identity(replace(one, rule=rule)).startswith(digits)
    )
    return next(ids, name_or_id)


def _available_finding_ids_text(advice: Advice) -> str:
    ids = [one.id for one in advice.findings]
    if not ids:
        return "it has no finding, and `selftime explain` lists the rules"
    more = f" and {len(ids) - _MAX_IDS_IN_MESSAGE} more" if len(ids) > _MAX_IDS_IN_MESSAGE else ""
    return f"its findings are {', '.join(ids[:_MAX_IDS_IN_MESSAGE])}{more}"
