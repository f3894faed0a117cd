"""Advice as text, Markdown and SARIF."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from rich.cells import cell_len

from selftime.advice import (
    Advice,
    Checked,
    Evidence,
    Finding,
    Fix,
    Health,
    JointSaving,
    Note,
    Rule,
    Saving,
    TypicalStep,
    Unknown,
    Where,
)
from selftime.advice.finding_ids import select_findings
from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED
from selftime.reports.advice.brief import as_brief
from selftime.reports.advice.markdown import code_span, escape_markdown
from selftime.reports.advice.queries import ShellQueries
from selftime.reports.advice.sarif import as_sarif
from selftime.reports.advice.text import as_text
from selftime.trace import Trace

ROOT = PurePosixPath("/job")
FILE = str(ROOT / "src" / "train.py")
SLOW = Finding(
    rule="slow_input",
    covers=("A1",),
    title="The step waits for `DataLoader`",
    where=Where(FILE, 31, "main", "stack"),
    count_per_step=1.0,
    saving=Saving.of_step(100.0, 20.0, method="model", low_ms=10.0, high_ms=25.0, upper_ms=30.0),
    confidence="high",
    evidence=(Evidence("exposed", 20.0, "ms", (1, 2)), Evidence("share", 0.2, "ratio")),
    fix=Fix("Load in other processes.", "DataLoader(data, num_workers=4)\n    # more"),
)
ADVICE = Advice(
    Health("degraded", (Note("steps", "only 2 steps", 2.0),)),
    TypicalStep(2, 95.7, 98.2, "device-bound"),
    (SLOW,),
    JointSaving(20.0, 1.25),
    (Checked("no float64 on the device", upper_ms=0.1, rule="float64"),),
    (Unknown("Python stacks: record with `with_stack=True`", rule="slow_optimizer"),),
)


def as_markdown(advice: Advice, *, root: str | None = None) -> str:
    return as_brief(advice, ShellQueries("trace.json"), root=root)


EVIL = "\x1b[31m</b><script>alert(1)</script> `rm` @all [x](http://a) | *b*\u202e"


@pytest.mark.parametrize("write", [as_text, as_markdown])
def test_a_line_in_what_cannot_be_told_is_seen_from_the_folder(write: Callable[..., str]) -> None:
    needs = f"device activity; there `{ROOT / 'src' / 'train.py'}:31 in main` would wait"
    advice = replace(ADVICE, unknown=(Unknown(needs, rule="scalar_read"),))
    page = " ".join(write(advice, root=str(ROOT)).split())
    assert "there `src/train.py:31 in main` would wait" in page
    assert str(ROOT) not in page


def with_finding(**changes: Any) -> Advice:
    return replace(ADVICE, findings=(replace(SLOW, **changes),))


def test_code_of_a_fix_is_never_wrapped() -> None:
    code = "model = torch.compile(model)  # makes one kernel of many operators of the model"
    lines = as_text(with_finding(fix=Fix("Compile.", code)), width=60).splitlines()
    assert f"       {code}" in lines


def test_text_has_health_and_three_sections_in_order() -> None:
    page = as_text(ADVICE, root=str(ROOT))
    parts = [
        "degraded",
        "only 2 steps",
        "host 98.2 ms, device 95.7 ms",
        "DO THIS",
        "CHECKED",
        "CANNOT TELL",
    ]
    assert [page.index(part) for part in parts] == sorted(page.index(part) for part in parts)
    assert "src/train.py:31 in main" in page
    assert "saves 20.0 ms a step (10.0 to 25.0 ms), 1.25 times as fast" in page
    assert "DataLoader(data, num_workers=4)" in page
    assert "high confidence, results stay the same [slow_input]" in page
    assert "at most 100 µs a step" in page


def test_text_of_an_unusable_trace_promises_nothing() -> None:
    page = as_text(
        Advice(
            Health("unusable", (Note("events", "no events"),)),
            unknown=(Unknown("no events", rule="a"),),
        )
    )
    assert "no advice is given" in page
    assert "DO THIS" not in page
    assert "Step" not in page
    assert "CANNOT TELL" in page


def test_text_says_when_there_is_nothing_to_do() -> None:
    assert "Nothing was found" in as_text(
        Advice(Health("good"), TypicalStep(5, None, 3.0, "host-only"))
    )


RULES_OF_A_GPU = tuple(
    Unknown(REQUIREMENT_BY_NEED["device"].remedy, rule=f"rule_{n}") for n in range(30)
)


def test_rules_that_need_a_gpu_are_one_line_of_the_text() -> None:
    known = f"{REQUIREMENT_BY_NEED['device'].remedy}; there `train.py:3` would wait"
    advice = replace(ADVICE, unknown=(*RULES_OF_A_GPU, Unknown(known, rule="scalar_read")))
    section = as_text(advice).partition("CANNOT TELL\n")[2]
    assert section.startswith("  30 rules need a recording from a GPU.\n")
    assert "rule_1" not in section
    assert "would wait" in section
    assert len(advice.to_dict()["unknown"]) == 31


def test_one_rule_that_needs_a_gpu_is_named() -> None:
    page = as_text(replace(ADVICE, unknown=RULES_OF_A_GPU[:1]))
    assert "needs device activity" in page
    assert "rule_0" in page


@pytest.mark.parametrize("write", [as_text, as_markdown])
@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("float64", ("found nothing here that is worth a change", "no float64 on the device")),
        ("logging", ("found nothing here that is worth a change", "nothing logs")),
        ("rule_1", ("found nothing here: the recording lacks what it needs", "device activity")),
    ],
)
def test_of_a_chosen_rule_it_is_said_that_it_found_nothing_and_why(
    write: Callable[..., str], rule: str, told: tuple[str, ...]
) -> None:
    whole = replace(ADVICE, findings=(), checked=(LISTED, FIRST), unknown=RULES_OF_A_GPU)
    page = " ".join(write(select_findings(whole, rule)).split())
    assert f"The rule `{rule}` found nothing here" in page
    assert all(text in page for text in told)
    assert "Nothing was found" not in page


LISTED, FIRST, SECOND = (
    Checked("no float64 on the device", upper_ms=0.1, rule="float64"),
    Checked("nothing logs", rule="logging", is_absent=True),
    Checked("nothing leaks", upper_ms=0.0, rule="leak", is_absent=True),
)


@pytest.mark.parametrize(
    ("checked", "told"),
    [
        ((LISTED,), None),
        ((FIRST,), "1 cause was checked and not found in this trace"),
        ((FIRST, FIRST, SECOND), "2 causes were checked and not found in this trace"),
        ((LISTED, FIRST), "and 1 other cause was checked and not found in this trace"),
        ((LISTED, FIRST, SECOND), "and 2 other causes were checked and not found in this trace"),
    ],
)
def test_what_is_absent_is_counted(checked: tuple[Checked, ...], told: str | None) -> None:
    advice = replace(ADVICE, checked=checked)
    section = as_text(advice).partition("CHECKED, NOT WORTH IT\n")[2].partition("\n\n")[0]
    lines = [line.strip() for line in section.splitlines()]
    listed = ["float64  no float64 on the device (at most 100 µs a step)"] * (LISTED in checked)
    assert lines == [*listed, *([told] if told else [])]
    section = as_markdown(advice).partition("not worth it\n\n")[2].partition("\n\n")[0]
    _, *items = section.splitlines()
    more = f"- {told}: `selftime advise $T --format markdown --all`"
    assert [item for item in items if "not found" in item] == ([more] if told else [])
    assert len(items) == len(lines)
    assert [c["rule"] for c in advice.to_dict()["checked"]] == [c.rule for c in checked]


def test_text_does_not_add_savings() -> None:
    two = replace(ADVICE, findings=(SLOW, replace(SLOW, rule="other")), joint=JointSaving())
    assert "do not add up" in as_text(two)
    assert "do not add up" not in as_text(ADVICE)


def test_text_tells_findings_of_one_rule_apart() -> None:
    pair = (replace(SLOW, id="slow_input-1"), replace(SLOW, id="slow_input-2"))
    assert "[slow_input-2]" in as_text(replace(ADVICE, findings=pair))
    one = replace(ADVICE, findings=pair[:1])
    assert "[slow_input]" in as_text(one)
    assert "[slow_input-1]" in as_text(replace(one, trace=Trace()), with_events=True)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_fits(width: int) -> None:
    long = with_finding(title="word " * 60, where=Where("/very/" + "long/" * 40 + "a.py", 1))
    lines = as_text(long, width=width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_text_has_colour_only_where_asked() -> None:
    assert "\x1b[" in as_text(ADVICE, colour=True)
    assert "\x1b" not in as_text(ADVICE)


def test_text_holds_no_number_for_an_unknown_saving() -> None:
    page = as_text(with_finding(saving=Saving(), where=Where()))
    assert "saving unknown" in page
    assert "line unknown" in page
    assert "saves at most 9.00 ms a step" in as_text(with_finding(saving=Saving(upper_ms=9.0)))


def test_text_says_when_only_the_definition_is_known() -> None:
    where = replace(SLOW.where, how="definition")
    assert "(where it is defined)" in as_text(with_finding(where=where))


def test_names_cannot_act_in_text() -> None:
    page = as_text(with_finding(title=EVIL, where=Where(EVIL, 1, EVIL)))
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_markdown_quotes_names() -> None:
    page = as_markdown(with_finding(title=EVIL, where=Where(EVIL, 1, EVIL)), root=str(ROOT))
    heading = next(line for line in page.splitlines() if line.startswith("### "))
    assert "<script>" not in heading.replace("\\<", "")
    assert "@all" not in heading
    assert "`rm`" in heading
    assert max(len(line) for line in page.splitlines()[1:]) < 230


def test_markdown_has_health_and_three_sections() -> None:
    page = as_markdown(ADVICE, root=str(ROOT))
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Do this",
        "## Checked, not worth it",
        "## Cannot tell",
    ]
    assert "`src/train.py:31 in main`: saves 20.0 ms a step" in page
    assert "```python\nDataLoader(data, num_workers=4)\n    # more\n```" in page


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("a", "`a`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("a\nb", "`a\\nb`"),
        ("x" * 300, f"`{'x' * 60}…{'x' * 59}`"),
    ],
)
def test_a_quoted_name_is_one_code_span(name: str, span: str) -> None:
    assert code_span(name) == span


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words.", "plain words."),
        ("a `b|c` d|e", "a `b|c` d\\|e"),
        ("a ` b", "a ' b"),
        ("- a", "\\- a"),
        ("<i>&amp;", "\\<i\\>\\&amp;"),
    ],
)
def test_a_sentence_is_no_markup(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown


def test_sarif_places_findings_on_their_lines() -> None:
    page = "Slow input.\n\n## What it means\nIt waits.\n\n## What to do\nLoad sooner.\n"
    rule = Rule("slow_input", page, ("A1",), (), lambda _trace: iter(()))
    nowhere = replace(SLOW, rule="other", where=Where())
    report = json.loads(
        as_sarif(replace(ADVICE, findings=(SLOW, nowhere)), {"slow_input": rule}, root=str(ROOT))
    )
    assert report["version"] == "2.1.0"
    [run] = report["runs"]
    assert run["tool"]["driver"]["rules"][0]["help"] == {"text": "Load sooner."}
    assert run["properties"] == {"health": "degraded", "findingsWithoutLine": 1}
    [result] = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("slow_input", 0, "warning")
    [location] = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "src/train.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 31},
    }


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("/other/my code.py", "file:///other/my%20code.py"),
        ("C:\\code\\a.py", "file:///C:/code/a.py"),
        ("my code.py", "my%20code.py"),
    ],
)
def test_sarif_writes_files_as_addresses(file: str, uri: str) -> None:
    advice = with_finding(where=Where(file, 1))
    [run] = json.loads(as_sarif(advice, {}, root=str(ROOT)))["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri
