"""Programs of `corpus/programs` are declared as they are, and scored by their clock and ledger."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from programs.clock import (
    LIBRARY,
    Clocked,
    Interval,
    clocked,
    clocked_tree,
    compiled_copy,
    read_clock,
)
from programs.expected import KINDS, PARTS, SCRIPTS, Program, Steps, program, programs
from programs.run import Score, as_json, row, score, summary
from programs.scoring import Kept, Part, counted_steps, parts, refusal, steps_fault

from selftime.run import COUNTED, PHASES, RUN_SEGMENTS, Run

MS = 1_000_000
ANSWERED_FLOOR, RIGHT_STEPS_FLOOR, RIGHT_PARTS_FLOOR = 63, 58, 52
"""How many of 65 programs are answered, have the right steps, and the right parts, at the least."""
DECLARED = programs()
EACH = pytest.mark.parametrize("about", DECLARED, ids=lambda about: about.name)


def some(*steps: Steps, **more: object) -> Program:
    told = {"command": ("a.py",), "files": ("a.py",), "phases": {}} | more
    return Program("some", "a program", steps=steps, **told)  # type: ignore[arg-type]  # by name


def kept(*segments: tuple[str | None, int], recording: Sequence[int] = ()) -> Kept:
    """A ledger of segments (kind, ms) of a process that began at 0; recording in ms of each."""
    rows, start = [], 10
    recorded = [*recording, *[0] * (len(segments) - len(recording))]
    for number, ((kind, duration), own) in enumerate(zip(segments, recorded, strict=True)):
        counted = [own * MS if name == "recording" else 0 for name in counted_columns()]
        rows.append(
            (number, start * MS, duration * MS, kind, *counted, False, *[None] * (len(PHASES) + 2))
        )
        start += duration
    table = pl.DataFrame(rows, schema=dict(RUN_SEGMENTS.dtypes), orient="row")
    return Kept(1, Run(segments=table, startup_ns=10 * MS), 0, {})


def counted_columns() -> list[str]:
    return [c.name for c in RUN_SEGMENTS.columns if c.name in COUNTED]


@EACH
def test_what_a_declaration_says(about: Program) -> None:
    assert set(about.phases) <= PARTS
    assert all(steps.kind in KINDS and steps.count > 0 for steps in about.steps)
    assert all((steps.loop is None) != (steps.call is None) for steps in about.steps)
    assert bool(about.steps) == (about.says is None), "of a program without steps something is said"
    for text in about.texts():
        assert about.line_of(text)


@EACH
def test_the_clock_finds_every_statement_that_is_declared(about: Program) -> None:
    marked = [
        node
        for file, source in about.sources().items()
        for node in ast.walk(clocked_tree(about, source, is_main=file in about.command))
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("program_marks.")
    ]
    calls = [node.attr for node in marked]
    phases = {text for texts in about.phases.values() for text in texts}
    assert calls.count("iteration") >= len({steps.loop for steps in about.steps if steps.loop})
    assert calls.count("batches") >= sum(steps.loads for steps in about.steps)
    assert calls.count("enter") >= len(phases | {s.loop or s.call for s in about.steps})


@EACH
def test_a_program_is_small_and_has_no_hint(about: Program) -> None:
    source = "".join(about.sources().values())
    assert 10 <= len(source.splitlines()) <= 100
    assert "selftime" not in source


def test_every_program_is_declared() -> None:
    files = {file for about in DECLARED for file in about.files}
    found = {path.relative_to(SCRIPTS).as_posix() for path in SCRIPTS.rglob("*.py")}
    assert found == files
    assert len(DECLARED) >= 60


def test_an_unknown_program_is_told() -> None:
    with pytest.raises(SystemExit, match="no program of corpus/programs"):
        program("none")


def test_a_clock_without_phases_knows_only_other() -> None:
    seen = clocked([(0, "start", ""), (5, "end", "")])
    assert (seen.start, seen.end, seen.times()) == (0, 5, {"other": 5})


def test_times_of_phases_within_each_other() -> None:
    seen = clocked(
        [
            (0, "start", ""),
            (1, "enter", "imports"),
            (3, "enter", "garbage_collection"),
            (4, "leave", "garbage_collection"),
            (9, "leave", "imports"),
            (10, "enter", "steps"),
            (11, "iteration", "for x in y:"),
            (12, "enter", "evaluation"),
            (13, "enter", "imports"),
            (14, "leave", "imports"),
            (15, "leave", "evaluation"),
            (20, "leave", "steps"),
            (22, "enter", "steps"),
            (23, "leave", "steps"),
            (25, "end", ""),
        ]
    )
    assert seen.times() == {
        "data": 2,
        "imports": 7,
        "garbage_collection": 1,
        "steps": 8,
        "evaluation": 3,
        "other": 2,
        "end": 2,
    }
    assert seen.iterations == {"for x in y:": [11]}


def test_a_program_with_a_clock_runs_as_before_on_the_same_lines(tmp_path: Path) -> None:
    about = program("imports_only")
    text = 'import sys\nfor number in range(3):\n    print(number)\nraise SystemExit("line 4")\n'
    (tmp_path / "imports_only.py").write_text(text)
    loop = some(Steps("step", 3, loop="for number in range(3):"), files=("imports_only.py",))
    tree = clocked_tree(loop, text, is_main=True)
    lines = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    assert lines == {1, 2, 3, 4}
    command = compiled_copy(about, tmp_path)
    assert command == ("imports_only.pyc",)
    (tmp_path / "clock").mkdir()
    environment = dict(os.environ) | {
        "PROGRAM_CLOCK": str(tmp_path / "clock"),
        "PYTHONPATH": str(tmp_path / LIBRARY),
    }
    code = compile(tree, "loop.py", "exec")
    script = f"import marshal\nexec(marshal.loads({__import__('marshal').dumps(code)!r}))"
    ran = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("0\n1\n2\n", 1)
    (seen,) = read_clock(tmp_path / "clock").values()
    assert len(seen.iterations["for number in range(3):"]) == 3
    assert seen.end is not None


INTERRUPTED_COLLECTION = """
import ctypes, gc, signal
from functools import partial

gc.disable()
import program_marks

trips = property(ctypes.pythonapi.PyErr_SetInterruptEx)
phases = type("Phases", (), {"_as_parameter_": int(signal.SIGINT), "start": trips, "stop": 0})
interrupt = partial(getattr, phases())
gc.callbacks.insert(0, interrupt)  # Ctrl-C as a collection begins
program_marks.enter("data")
try:
    gc.collect()
    print("lost")
except KeyboardInterrupt:
    print("raised")
gc.callbacks.remove(interrupt)
gc.collect()
program_marks.leave()
program_marks.end()
"""


def test_the_clock_leaves_an_interrupt_to_the_program(tmp_path: Path) -> None:
    """And tells of collections how long each took, within the phase that it came in."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "program.py").write_text(INTERRUPTED_COLLECTION)
    compiled_copy(program("imports_only"), tmp_path / "program")
    environment = dict(os.environ) | {
        "PROGRAM_CLOCK": str(tmp_path / "clock"),
        "PYTHONPATH": str(tmp_path / "program" / LIBRARY),
    }
    ran = subprocess.run(  # noqa: S603 - a program of this file
        [sys.executable, str(tmp_path / "program" / "program.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "raised\n", "")
    (path,) = (tmp_path / "clock").iterdir()
    whats = [(what, name) for _, what, name in json.loads(path.read_text())]
    collection = [("enter", "garbage_collection"), ("leave", "garbage_collection")]
    in_phase = [("enter", "data"), *collection, *collection, ("leave", "data")]
    assert [event for event in whats if event[1] != "imports"] == [
        ("start", ""),
        *in_phase,
        ("end", ""),
    ]


def test_a_run_without_steps_is_refused_with_its_sentence() -> None:
    about = some(Steps("training", 2, loop="for x in y:"))
    said = "selftime: nothing was recorded: no step was found: why; do that\n"
    assert refusal(about, said, [], has_trace=False) == "no step was found: why"
    told = "selftime: no step was found: why; do that\n"  # where there is an account of the run
    assert refusal(about, told, [], has_trace=False) == "no step was found: why"
    assert refusal(about, "", [kept(("training", 5))], has_trace=False) is None
    assert refusal(about, "", [], has_trace=True) is None


def test_a_program_without_steps_is_answered_by_its_account() -> None:
    about = some(says="before its first step")
    assert refusal(about, "Run     5.8 s\n", [], has_trace=False) is None
    assert refusal(about, "", [], has_trace=False) == "no account of the run was printed"
    assert steps_fault(about, "it ended before its first step", [], {}) is None
    assert steps_fault(about, "Run     5.8 s\n", [], {}) == (
        "it does not say `before its first step`"
    )


def test_steps_may_differ_by_one_and_must_be_of_the_kind() -> None:
    about = some(Steps("training", 3, loop="for x in y:"))
    two = kept(("training", 5), ("training, unusual", 5))
    assert counted_steps(two.run) == {"training": 2}
    assert steps_fault(about, "", [two], {}) is None
    assert steps_fault(about, "", [kept(("training", 5))], {}) == "1 training, expected 3 training"
    other = kept(("training", 5), ("training", 5), ("inference", 5))
    assert steps_fault(about, "", [other], {}) == "2 training, 1 inference, expected 3 training"
    assert steps_fault(about, "", [two, two], {}) == "steps in 2 processes, expected in 1"


def test_a_step_ends_in_each_iteration() -> None:
    about = some(Steps("training", 6, loop="for x in y:"))
    even = kept((None, 10), *[("training", 10)] * 6)
    begins = {"for x in y:": [n * 10 * MS + 1 for n in range(2, 8)]}
    assert steps_fault(about, "", [even], {1: Clocked(0, None, (), begins)}) is None
    uneven = {"for x in y:": [n * MS for n in (20, 21, 22, 23, 24, 80)]}
    assert steps_fault(about, "", [even], {1: Clocked(0, None, (), uneven)}) == (
        "5 of 6 iterations do not have the end of one step"
    )


def test_parts_are_compared_without_recording() -> None:
    about = some(Steps("training", 2, loop="for x in y:"))
    told = kept((None, 30), ("training", 30), ("training", 40), (None, 10), recording=[0, 0, 10])
    intervals = (
        Interval("data", 10 * MS, 40 * MS),
        Interval("steps", 40 * MS, 110 * MS),
        Interval("end", 110 * MS, 120 * MS),
    )
    found = parts(about, told, Clocked(10 * MS, 120 * MS, intervals), spawned=0)
    assert {part.name: (part.ledger_ns // MS, part.clock_ns // MS) for part in found} == {
        "wall": (120, 120),
        "start": (10, 10),
        "data": (30, 30),
        "steps": (60, 60),
        "end": (10, 10),
    }
    assert all(part.is_right for part in found)


def test_a_part_is_wrong_from_two_percent_of_the_wall_time() -> None:
    assert Part("steps", 102, 100, 100).is_right
    assert not Part("steps", 103, 100, 100).is_right


def test_scores_are_a_line_a_summary_and_json() -> None:
    right = Score("a", None, None, "stated", (Part("steps", 1, 1, 10),), None, 1.0)
    wrong = Score("b", "no step was found", "refused", "not stated", (), "status 1", 1.0)
    assert "answered  steps right  parts right" in row(right)
    assert "refused: no step was found" in row(wrong)
    assert summary([right, wrong]) == [
        "answered      1 of 2",
        "steps right   1 of 2",
        "line stated   1 of 2",
        "parts right   1 of 2",
        "not harmed    1 of 2",
    ]
    assert [told["name"] for told in json.loads(as_json([right, wrong]))] == ["a", "b"]


@pytest.mark.torch
@pytest.mark.timed
@pytest.mark.sweep
@pytest.mark.timeout(3 * 3600)
def test_programs_are_answered_rightly(tmp_path: Path) -> None:
    """The floors hold on a machine that other programs use, too; the README has today's figures."""
    pytest.importorskip("torch")
    scores = []
    for about in DECLARED:
        (tmp_path / about.name).mkdir()
        scores.append(score(about, tmp_path / about.name, once=True))
    told = "\n".join(row(one) for one in scores)
    assert not [one.name for one in scores if one.failed], told
    assert sum(one.refused is None for one in scores) >= ANSWERED_FLOOR, told
    assert sum(one.steps is None for one in scores) >= RIGHT_STEPS_FLOOR, told
    assert sum(one.has_right_parts for one in scores) >= RIGHT_PARTS_FLOOR, told
