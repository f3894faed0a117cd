"""Answers the page's questions for the step time after changes: `api/what_if`."""

from collections.abc import Mapping
from typing import Final

import msgspec

from selftime.advice.what_if import what_if
from selftime.errors import UsageError
from selftime.reports.page_data.what_if import what_if_data
from selftime.web.answers import PageDataAnswers

_MAX_CHANGES: Final = 20
"""Largest number of changes in one request."""
_INVALID_CHANGES_MESSAGE: Final = (
    '`changes` is not a list of changes; write [{"change": "scale", "pattern": "aten::mm", '
    '"kept_share": 0.5}]'
)


class _AskedChange(msgspec.Struct, forbid_unknown_fields=True):
    """A change as the page asks for it."""

    change: str
    pattern: str
    kept_share: float = 0.0


def what_if_json(answers: PageDataAnswers, parameters: Mapping[str, str]) -> bytes:
    """Returns the predicted step time of a trace after changes as JSON.

    What cannot be predicted, such as a pattern without a match, is an answer with one sentence as
    `error`: the reader types patterns, and a browser would write a refusal to its console.
    """
    changes = _parse_changes(parameters.get("changes", ""))
    trace = answers.open_trace(parameters.get(".trace", ""))
    try:
        found = what_if(
            trace,
            scale={one.pattern: one.kept_share for one in changes if one.change == "scale"},
            remove=[one.pattern for one in changes if one.change == "remove"],
            hide=[one.pattern for one in changes if one.change == "hide"],
        )
    except UsageError as error:
        return msgspec.json.encode({"error": str(error)})
    return msgspec.json.encode(what_if_data(found))


def _parse_changes(changes_json: str) -> list[_AskedChange]:
    """Returns the changes of a request from their JSON text.

    Raises:
        UsageError: The text is no list of changes, or there are too many.
    """
    try:
        changes = msgspec.json.decode(changes_json, type=list[_AskedChange])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise UsageError(_INVALID_CHANGES_MESSAGE) from None
    if any(one.change not in {"scale", "remove", "hide"} for one in changes):
        raise UsageError(_INVALID_CHANGES_MESSAGE)
    if len(changes) > _MAX_CHANGES:
        raise UsageError(f"there are {len(changes)} changes; ask for at most {_MAX_CHANGES}")
    return changes
