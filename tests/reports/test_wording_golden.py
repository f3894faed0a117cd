"""The page says what the terminal says: both are held to `tests/golden/wording.json`.

`wording.test.ts` of the page reads the same file. `pytest --update-golden` writes it anew.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from selftime.advice import (
    Advice,
    Checked,
    Evidence,
    Finding,
    Fix,
    Health,
    Joint,
    Note,
    Saving,
    Step,
    Unknown,
    Where,
)
from selftime.reports.advice import wording
from selftime.reports.advice.markdown import as_markdown
from selftime.reports.page_data.advice import advised
from selftime.reports.plain import plain

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "wording.json"
ROOT: Final = "/job/src"
TIMES: Final = (0.0, 0.004, 0.125, 0.375, 1.005, 9.994, 9.996, 12.25, 99.95, 100.5, 1234.5, 98765.4)
TEXTS: Final = (
    "aten::mm",
    "a\tb\nc\r\x00\x7f\x85",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07after\x9b1m",
    "left\u202eright \u2028 \U000e0041 é 漢",
)
EVIL: Final = "\x1b[31m</b><script>alert(1)</script> `rm` @all [x](http://a) | *b*\u202e"

SLOW: Final = Finding(
    rule="slow_input",
    covers=("A1",),
    title="The step waits for `DataLoader`",
    where=Where("/job/src/train.py", 31, "main", "stack"),
    count_per_step=1.0,
    saving=Saving.of_step(100.0, 20.0, method="model", low_ms=10.0, high_ms=25.0, upper_ms=30.0),
    confidence="high",
    evidence=(Evidence("exposed", 20.0, "ms", (1, 2)), Evidence("share", 0.125, "ratio")),
    fix=Fix("Load in other processes.", "DataLoader(data, num_workers=4)\n    # more ```"),
)
ODD: Final = Finding(
    rule="hidden_sync",
    covers=("B12",),
    title=f"{EVIL} `open",
    where=Where("/elsewhere/net.py", 7, "forward<T>", "definition"),
    saving=Saving(upper_ms=1.25),
    confidence="medium",
    semantics="numerics",
    evidence=(Evidence("of it in /job/src/net.py:3", None, "bytes"), Evidence("`n`", 3, "count")),
    fix=Fix("- Leave it; `" + "x" * 200 + "` is long."),
)
UNPLACED: Final = Finding(
    rule="small_batch",
    title="The batch is small",
    where=Where(function="main"),
    saving=Saving(),
    confidence="low",
    semantics="training",
    fix=Fix("Make it larger."),
)

ANSWERS: Final = (
    Advice(
        Health("good"),
        Step(5, 95.7, 98.2, "device-bound"),
        (SLOW,),
        Joint(20.0, 1.25),
        (Checked("no float64", 0.125, rule="float64"), Checked("few", rule="few")),
        (Unknown("stacks", rule="b"), Unknown("steps", rule="a"), Unknown("stacks", rule="c")),
    ),
    Advice(
        Health("degraded", (Note("steps", EVIL, 2.0),)),
        Step(0, None, 1234.5, None),
        (SLOW, ODD, UNPLACED),
        Joint(21.5, 1.3),
        (
            Checked("in /job/src/a.py:1", 0.0, rule="x"),
            Checked("no y", rule="y", is_absent=True),
            Checked("no z", rule="z", is_absent=True),
        ),
    ),
    Advice(
        Health("good"),
        Step(1, None, None, "host-only"),
        (SLOW, UNPLACED),
        Joint(),
        (Checked("no y", rule="y", is_absent=True),),
    ),
    Advice(
        Health("unusable", (Note("events", "no events"),)), unknown=(Unknown("none", rule="a"),)
    ),
)


def said(advice: Advice, root: str | None) -> dict[str, Any]:
    found = advice.findings
    return {
        "health": wording.HEALTH[advice.health.verdict],
        "step": wording.step_text(advice.step),
        "places": [wording.place_text(f.where, root) for f in found],
        "savings": [wording.saving_text(f.saving) for f in found],
        "sureness": [wording.sureness_text(f) for f in found],
        "evidence": [[wording.evidence_text(e, root) for e in f.evidence] for f in found],
        "checked": [wording.checked_text(c, root) for c in wording.weighed(advice)],
        "absent": wording.absent_text(advice),
        "joint": wording.joint_text(advice),
        "needs": wording.by_need(advice),
    }


def test_the_page_and_the_terminal_say_the_same(request: pytest.FixtureRequest) -> None:
    answers = [
        {
            "advice": advised(advice),
            "root": root,
            "said": said(advice, root),
            "markdown": as_markdown(advice, root=root),
        }
        for advice in ANSWERS
        for root in (None, ROOT)
    ]
    golden = {
        "milliseconds": [[value, wording.milliseconds(value)] for value in TIMES],
        "plain": [[text, plain(text)] for text in TEXTS],
        "answers": answers,
    }
    text = json.dumps(golden, indent=1) + "\n"
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
