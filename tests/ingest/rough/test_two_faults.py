"""Two faults in one file: nothing is dropped, no view fails, and nothing is sure advice."""

from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import pytest
from tests.ingest.rough import fields, times
from tests.ingest.rough.case import Case
from tests.ingest.rough.looking import advice_on

from selftime.ingest.load import load
from selftime.trace import Trace

CASES: Final = [
    found
    for section in (fields, times)
    for found in vars(section).values()
    if isinstance(found, Case)
]
VIEWS: Final = (
    "health",
    "overview",
    "steps",
    "operators",
    "kernels",
    "idle",
    "launches",
    "timeline",
)
dice: Final = Random(35)  # noqa: S311 - no secret
PAIRS: Final = [tuple(dice.sample(CASES, 2)) for _ in range(24)]


def both(first: Case, second: Case) -> tuple[bytes, int]:
    """The events of both files in one, under the first one's header; and how many there are."""
    documents: list[dict[str, Any]] = [
        msgspec.json.decode(one.data(), type=dict[str, msgspec.Raw]) for one in (first, second)
    ]
    lists = [msgspec.json.decode(one["traceEvents"], type=list[msgspec.Raw]) for one in documents]
    joined = [*lists[0], *lists[1]]
    return msgspec.json.encode({**documents[1], **documents[0], "traceEvents": joined}), len(joined)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " + ".join(one.id for one in pair))
@pytest.mark.sweep(4)
def test_two_faults(pair: tuple[Case, Case], tmp_path: Path) -> None:
    data, count = both(*pair)
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    lost = int(trace.repairs["events_lost"].sum())
    assert int(trace.events["count"].sum()) + lost == count
    for view in VIEWS:
        trace.view(view)
    advice = advice_on(trace)
    assert advice["health"]["verdict"] != "good"
    assert not [found for found in advice["findings"] if found["confidence"] == "high"]
