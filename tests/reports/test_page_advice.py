"""What the page says of an answer is what the command says: it composes no sentence of its own."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.web.conftest import EVENTS
from typer.testing import CliRunner

from selftime import advise, load
from selftime.advice import (
    Advice,
    Checked,
    Evidence,
    Finding,
    Fix,
    Health,
    JointSaving,
    Note,
    Saving,
    TypicalStep,
    Unknown,
    Where,
)
from selftime.advice.finding_ids import with_finding_ids
from selftime.advice.savings.finding_overlap import joint_interval_ms
from selftime.cli import app
from selftime.reports.advice.text import as_text
from selftime.reports.page_data.advice import advice_data, common_folder_of_findings
from selftime.reports.plain import plain
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.units import milliseconds_text

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "texts.json"
"""What page and command both write; `plain.test.ts` reads the same file."""
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
        TypicalStep(5, 95.7, 98.2, "device-bound"),
        (SLOW,),
        JointSaving(20.0, 1.25),
        (Checked("no float64", 0.125, rule="float64"), Checked("few", rule="few")),
        (Unknown("stacks", rule="b"), Unknown("steps", rule="a"), Unknown("stacks", rule="c")),
    ),
    Advice(
        Health("degraded", (Note("steps", EVIL, 2.0),)),
        TypicalStep(0, None, 1234.5, None),
        (SLOW, ODD, UNPLACED),
        JointSaving(21.5, 1.3),
        (
            Checked("in /job/src/a.py:1", 0.0, rule="x"),
            Checked("no y", rule="y", is_absent=True),
            Checked("no z", rule="z", is_absent=True),
        ),
    ),
    Advice(
        Health("good"),
        TypicalStep(1, None, None, "host-only"),
        (SLOW, UNPLACED),
        JointSaving(),
        (Checked("no y", rule="y", is_absent=True),),
    ),
    Advice(
        Health("unusable", (Note("events", "no events"),)), unknown=(Unknown("none", rule="a"),)
    ),
)


@pytest.mark.parametrize("advice", ANSWERS, ids=range(len(ANSWERS)))
def test_each_sentence_is_one_that_the_terminal_shows(advice: Advice) -> None:
    said = advice_data(advice, "trace.json")["said"]
    root = common_folder_of_findings(advice)
    shown = one_line(as_text(advice, width=2000, root=root))
    sentences = [said["health"], *(need["text"] for need in said["unknown"])]
    if advice.health.verdict != "unusable":
        headline = said["headline"] or {"step": ""}
        sentences.append(headline["step"].removeprefix("recorded: "))
        sentences += filter(None, (said["nothing_to_do"], said["joint"]))
        sentences += [one["text"] for one in said["checked"]]
        sentences += [said["absent"]] if said["absent"] else []
    for one in said["findings"]:
        sentences += [one["line"] + one["place"], " ".join(one["saving"]), one["sureness"]]
        sentences += [f"{row['metric']}: {row['value']}" for row in one["evidence"]]
    assert [words for words in sentences if one_line(plain(words)) not in shown] == []
    assert len(said["findings"]) == len(advice.findings)


def test_the_step_before_and_after_a_fix_is_told_with_its_bounds() -> None:
    [said] = advice_data(ANSWERS[0])["said"]["findings"]
    text = "A step takes 100 ms now, 80.0 ms with this change, between 75.0 ms and 90.0 ms"
    assert said["step"] == {
        "before_ms": 100.0,
        "after_ms": 80.0,
        "shortest_ms": 75.0,
        "longest_ms": 90.0,
        "with_all_ms": None,
        "text": text,
    }


def test_a_step_of_which_everything_is_saved_has_no_speed_up() -> None:
    """The typical step tells its time."""
    all_of_it = replace(SLOW, saving=Saving(20.0, 10.0, 20.0, 20.0, None, "model"))
    advice = replace(ANSWERS[0], findings=(all_of_it,), step=TypicalStep(1, None, 20.0, None))
    step = advice_data(advice)["said"]["findings"][0]["step"]
    assert [step["before_ms"], step["after_ms"], step["longest_ms"]] == [20.0, 0.0, 10.0]


def test_a_step_that_nobody_knows_is_not_told() -> None:
    assert [one["step"] for one in advice_data(ANSWERS[1])["said"]["findings"][1:]] == [None, None]
    larger = replace(SLOW, saving=Saving(50.0, 0.0, 50.0, 50.0, None, "model"))
    advice = replace(ANSWERS[0], findings=(larger,), step=TypicalStep(1, 20.0, 20.0, None))
    assert advice_data(advice)["said"]["findings"][0]["step"] is None


def test_the_step_with_all_fixes_is_told_where_several_have_an_estimate() -> None:
    two = replace(ANSWERS[0], findings=(SLOW, SLOW), joint=JointSaving(50.0, 2.0))
    said = advice_data(two)["said"]
    assert said["findings"][0]["step"]["with_all_ms"] == 50.0
    assert said["findings"][0]["step"]["text"].endswith("; with all changes 50.0 ms")
    headline = said["headline"]
    assert (headline["now"], headline["after"]) == ("100 ms", "50.0 ms")
    assert headline["speedup"] == "2.00 times as fast with the changes below"


def test_the_range_with_all_fixes_holds_what_each_saves_at_least_and_at_most() -> None:
    """Intervals of fixes that overlap do not add up: together they save as much as the surest."""
    two = replace(ANSWERS[0], findings=(SLOW, SLOW), joint=JointSaving(30.0, 1.43))
    low, high = SLOW.saving.low_ms, SLOW.saving.high_ms
    assert low is not None
    assert high is not None
    assert joint_interval_ms(two.joint, two.findings) == (low, 2 * high)
    alone = replace(SLOW, saving=replace(SLOW.saving, low_ms=None))
    assert joint_interval_ms(two.joint, (SLOW, alone)) is None
    assert advice_data(two)["said"]["headline"]["range"] == (
        f"{milliseconds_text(99.76744 - 2 * high)} to {milliseconds_text(99.76744 - low)}"
    )


def test_no_step_is_said_to_take_no_time() -> None:
    """The most that each saves adds up to more than the step: that is no time of a step."""
    much = replace(SLOW, saving=Saving(50.0, 10.0, 90.0, 90.0, 2.0, "model"))
    two = replace(ANSWERS[0], findings=(much, much), joint=JointSaving(50.0, 2.0))
    assert advice_data(two)["said"]["headline"]["range"] == "at most 90.0 ms"


def test_the_step_without_recording_is_told_where_recording_slows_it() -> None:
    slowed = replace(ANSWERS[0], step=TypicalStep(5, 120.0, 120.0, None))
    headline = advice_data(slowed)["said"]["headline"]
    assert headline["title"] == "A step without recording"
    assert (headline["now"], headline["after"]) == ("100 ms", "80.0 ms")
    assert headline["step"] == "recorded: host 120 ms, device 120 ms, median of 5 steps"
    assert advice_data(ANSWERS[2])["said"]["headline"] is None


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_findings_are_placed_as_seen_from_their_folder() -> None:
    [slow, odd, _] = advice_data(ANSWERS[1])["said"]["findings"]
    assert (slow["line"], slow["place"]) == ("/job/src/train.py:31", " in main")
    assert odd["place"] == " in forward<T> (where it is defined)"
    [alone, unplaced] = advice_data(ANSWERS[2])["said"]["findings"]
    assert (alone["line"], unplaced["line"]) == ("train.py:31", "")
    assert unplaced["place"] == "in main"


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        (("/data/me/job/train.py", "/data/me/job/data/set.py", None), "/data/me/job"),
        (("/data/me/job/train.py",), "/data/me/job"),
        (("/data/me/train.py", "/usr/lib/x.py"), None),
        (("/train.py",), None),
        (("train.py", None), None),
        ((), None),
    ],
)
def test_the_folder_of_files_is_the_deepest_of_all(
    files: tuple[str | None, ...], folder: str | None
) -> None:
    findings = tuple(replace(SLOW, where=Where(file, 1)) for file in files)
    assert common_folder_of_findings(replace(ANSWERS[0], findings=findings)) == folder


@pytest.fixture
def loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of five steps that wait for their data, as a file in the working folder."""
    load = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events: list[dict[str, Any]] = []
    for step, at in enumerate(100_000.0 * number for number in range(6)):
        parts = (
            ("user_annotation", f"ProfilerStep#{step}", at, 99_000.0),
            ("cpu_op", load, at + 10, 60_000.0),
            ("cpu_op", "aten::mm", at + 61_000, 37_000.0),
        )
        events += [
            {**EVENTS[0], "cat": cat, "name": name, "ts": ts, "dur": dur}
            for cat, name, ts, dur in parts
        ]
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    monkeypatch.chdir(tmp_path)
    return Path("trace.json")


def test_what_the_page_copies_is_what_the_command_prints(loading: Path) -> None:
    trace = load(str(loading))
    assert isinstance(trace, Trace)
    page = advice_data(advise(trace))
    copied = page["said"]
    assert copied["markdown"] == printed(loading)
    findings = page["findings"]
    assert [one["rule"] for one in findings] == ["slow_input"]
    for finding, said in zip(findings, copied["findings"], strict=True):
        assert said["markdown"] == printed(loading, "--finding", finding["id"])


def printed(path: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["advise", str(path), "--format", "markdown", *words])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_long_name_does_not_make_the_page_long() -> None:
    name = "x" * 1_000_000
    where, evidence = Where(f"/{name}/{name}.py", 1, name), (Evidence(name, 1.0, "ms"),)
    long = replace(SLOW, title=name, where=where, evidence=evidence)
    advice = replace(
        ANSWERS[0],
        health=Health("degraded", (Note("steps", name),)),
        findings=tuple(with_finding_ids([long])),
        checked=(Checked(name, rule="x"),),
        unknown=(Unknown(name, rule="x"),),
    )
    assert len(json.dumps(advice_data(advice, "trace.json"))) < 60_000


def test_the_page_writes_quantities_and_names_as_the_command(
    request: pytest.FixtureRequest,
) -> None:
    golden = {
        "plain": [[text, plain(text)] for text in TEXTS],
    }
    text = json.dumps(golden, indent=1) + "\n"
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_account_is_the_one_of_the_terminal() -> None:
    drawing = """
        mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
        mark 1 | ddd         ddd         ddd
        cpu 1  |    aaabbbbbb   aaabbbbbb   aaabbbbbb
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
        a = aten::mm; line = train.py:7 step
        b = aten::add; line = train.py:8 step
    """
    advice = advise(sketch(drawing))
    account = advice_data(advice, "trace.json")["said"]["account"]
    shown = one_line(as_text(advice, width=2000))
    assert f"{account['step']} a step, bound by {account['bound_by']}: {account['spent']}" in shown
    assert account["title"].upper() in shown
    assert account["totals"] in shown
    rows = [
        f"{row['time']} {row['percent']} {row['text']} {row['verdict_text']}"
        for row in account["rows"]
    ]
    assert len(rows) == account["shown"] == 3
    assert [row for row in rows if row not in shown] == []
    assert sum(row["share"] for row in account["rows"]) == pytest.approx(1.0)
    assert sum(part["share"] for part in account["parts"]) == pytest.approx(1.0)


def test_without_steps_the_page_has_no_account() -> None:
    assert advice_data(ANSWERS[0], "trace.json")["said"]["account"] is None
