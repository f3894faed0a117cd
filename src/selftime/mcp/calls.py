"""The tool that gives a number of the advice again, in the words of a call."""

import json
from dataclasses import dataclass
from typing import Any

from selftime.advice.answer import Advice
from selftime.advice.base import Evidence
from selftime.reports.advice.queries import event_of
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls about the answer on one trace, which is named once: every call takes it."""

    id: str
    trace: Trace

    @property
    def names(self) -> str:
        return f'"trace": "{self.id}"'

    def whole(self) -> str:
        return _call("finding", id="RULE")

    def values(self) -> str:
        return _call("finding", id="all")

    def finding(self, word: str) -> str:
        return _call("finding", id=word)

    def step(self, _advice: Advice) -> str:
        return _call("view", name="overview")

    def event(self, number: int) -> str:
        return _call("slice", id=number)

    def evidence(self, evidence: Evidence) -> str | None:
        number = event_of(self.trace, evidence)
        return None if number is None else self.event(number)


def _call(tool: str, **given: Any) -> str:
    return f"{tool} {json.dumps(given)}" if given else tool
