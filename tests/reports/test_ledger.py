"""The answer begins with the whole run, in every form."""

import json

import jsonschema
import pytest
from tests.ledgers import Step, run_of

from selftime.advice import RULES, advise
from selftime.advice.advice_result import RunTime
from selftime.reports.advice import wording
from selftime.reports.advice.brief import as_brief
from selftime.reports.advice.queries import ShellQueries
from selftime.reports.advice.sarif import as_sarif
from selftime.reports.advice.text import as_text
from selftime.reports.html.summary import advice_summary_html
from selftime.reports.ledger import as_json, recorded_steps_share_sentence, run_sentence
from selftime.reports.ledger import as_text as run_as_text
from selftime.reports.schemas import schema
from selftime.testing import sketch
from selftime.trace import Trace

LOADED = "run | iterator 500 ms with 2 new workers at /job/train.py:9 main\n"
RUN = f"""
    run | before 1 s
    run | compiled forward 2 s at /job/model.py:3
    run | compiled forward 1 s at /job/model.py:3: 0/0: L['n'] == 3  # y = x * n
    run | training 3100 ms: compile 3 s
    run | 5 training 100 ms recorded
    {LOADED}
    run | training 800 ms: epoch_boundary 700 ms
    run | 20 training 100 ms
    {LOADED}
    run | training 800 ms: epoch_boundary 700 ms
"""
STEP = """
    column = 1 ms
    mark 1 | ssssssssssss
    cpu 1  |   mmmm
    s = ProfilerStep#1
    m = aten::mm
"""


def drawn(text: str) -> Trace:
    return sketch(text)


def test_a_run_in_one_sentence() -> None:
    assert run_sentence(drawn(RUN).run, "/job") == (
        "8.2 s: 3.0 s compiling (2 times, 1 of them a recompilation: `L['n'] == 3` at "
        "`model.py:3`), 2.8 s in 28 "
        "training steps, 1.4 s restarting workers at `train.py:9`, 1.0 s building data and "
        "model; 3 steps were slow, by 4.4 s, most compiling."
    )


def test_steps_that_become_slower_are_told() -> None:
    run = run_of([Step(20 + 0.05 * number) for number in range(200)])
    text = " ".join(run_as_text(run).split())
    assert "The training steps became 44.0 % slower over the run" in text
    assert as_json(run)["steps"]["trend"]["change"] > 0.4
    assert as_json(run_of([Step(20)] * 200))["steps"]["trend"] is None


def test_a_run_without_steps_and_one_that_was_killed() -> None:
    run = drawn("run | before 2 s: imports torch 2 s at train.py:1").run
    assert run_sentence(run) == "2.0 s: 2.0 s importing."
    killed = type(run)(segments=run.segments, is_whole=False)
    assert "the process was killed" in run_sentence(killed)


def test_how_much_was_recorded() -> None:
    assert recorded_steps_share_sentence(
        RunTime(10.0, "training", 1200, 2.5), has_recording=True
    ) == ("The recorded steps represent 1,200 training steps: 2.5 s, 25.0 % of the run.")
    nothing = recorded_steps_share_sentence(RunTime(10.0), has_recording=False)
    part = recorded_steps_share_sentence(RunTime(10.0), has_recording=True)
    elsewhere = RunTime(10.0, "training", 1200, 2.5)
    absent = recorded_steps_share_sentence(elsewhere, has_recording=False)
    assert nothing.startswith("No step was recorded")
    assert part.startswith("A part of the run was recorded")
    assert absent.startswith("Its recorded steps are not here")


def test_without_a_recording_nothing_is_said_of_steps() -> None:
    alone = advise(drawn("run | before 1 s"))
    assert wording.NO_FINDINGS_OF_RUN_SENTENCE in " ".join(as_text(alone).split())
    summary = advice_summary_html(alone)
    assert wording.NO_FINDINGS_OF_RUN_SENTENCE in summary
    assert "Health" not in summary


def test_the_text_begins_with_the_run_and_is_80_columns_wide() -> None:
    text = as_text(advise(drawn(STEP + RUN)), root="/job")
    lines = text.splitlines()
    assert lines[0].startswith("Run     8.2 s: 3.0 s compiling")
    assert max(map(len, lines)) <= 80
    assert text.index("The recorded steps represent") < text.index("Health")
    assert "saves 600 ms of the run (450 to 700 ms)" in text
    assert text.index("DO THIS") < text.index("train.py:9 in main")


def test_a_part_of_the_run_goes_on_below_its_own_text() -> None:
    path = "/job/a_folder_with_a_long_name/train.py"
    run = drawn(f"run | before 2 s: imports torch 2 s at {path}:1").run
    [first, second] = run_as_text(run).splitlines()[-2:]
    assert second == f"{' ' * first.index('importing')}{path}:1"


def test_a_run_without_a_recording_has_findings_and_no_health() -> None:
    text = as_text(advise(drawn(RUN.replace(" recorded", ""))), root="/job")
    assert "No step was recorded" in text
    assert "Health" not in text
    assert "[repeated_compilations]" in text
    assert "slow_input" not in text


def test_markdown_sarif_and_json_tell_the_run() -> None:
    advice = advise(drawn(STEP + RUN))
    brief = as_brief(advice, ShellQueries("trace.json"))
    assert brief.index("**Run** 8.2 s:") < brief.index("**Health**")
    assert "600 ms of the run" in brief
    [run] = json.loads(as_sarif(advice, RULES))["runs"]
    assert run["properties"]["runWallSeconds"] == pytest.approx(8.2)
    assert {"epoch_worker_starts", "repeated_compilations"} <= {
        result["ruleId"] for result in run["results"]
    }
    assert all("runSeconds" in result["properties"] for result in run["results"])
    for text in (STEP + RUN, RUN.replace(" recorded", ""), STEP):
        told = json.loads(advise(drawn(text)).to_json())
        jsonschema.Draft202012Validator(schema("advice")).validate(told)


def test_names_of_the_program_stay_in_their_quotation() -> None:
    hostile = RUN.replace("L['n'] == 3", "`# obey me")
    sentence = run_sentence(drawn(hostile).run)
    assert sentence.count("`") % 2 == 0


def test_steps_of_several_kinds_are_counted_apart() -> None:
    steps = """
        run | before 1 s
        run | loop training at /job/train.py:20
        run | 56 training 10 ms
        run | 111 inference 4 ms
    """
    text = " ".join(run_as_text(drawn(steps).run, root="/job").split())
    assert "in 56 training steps of the loop at train.py:20, 111 inference steps" in text
    one_kind = steps.replace("111 inference", "2 training")
    text = " ".join(run_as_text(drawn(one_kind).run, root="/job").split())
    assert "in 58 steps of the loop at train.py:20" in text


def test_the_line_of_an_evaluation_is_named() -> None:
    run = """
        run | before 1 s
        run | 9 training 10 ms
        run | training 510 ms: evaluation 500 ms, program 500 ms at /job/train.py:40 validate
    """
    text = run_as_text(drawn(run).run, root="/job")
    assert "in evaluation at train.py:40" in " ".join(text.split())


def test_a_compilation_that_has_not_ended_is_not_counted() -> None:
    run = sketch("run | before 9 s: compile 8 s").run
    text = run_as_text(run)
    assert "compiling" in text
    assert "compilation" not in text
