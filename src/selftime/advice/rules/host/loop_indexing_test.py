"""Tests the rule `loop_indexing` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 10 us
    mark 1 | {step}
    cpu 1  | {loop}
    s = ProfilerStep#1
    a = aten::select; line = fill.py:4 fill
    b = aten::select; line = {other}:4 fill
    m = aten::mm
"""


def drawing(
    iterations: int, *, pause_columns: int = 0, second_file: str = "fill.py", width: int = 400
) -> str:
    """Draws a step with a loop that a pause of `pause_columns` columns splits in two halves."""
    half = "ab" * (iterations // 4)
    loop = (half + " " * pause_columns + half).ljust(width - 20) + "m" * 20
    return DRAWING.format(step="s" * width, loop=loop, other=second_file)


def test_a_loop_over_fifty_elements_is_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing(48))
    [finding] = judge(drawing(52))
    assert (finding.where.file, finding.where.line) == ("fill.py", 4)
    assert finding.count_per_step == 52


def test_elements_of_two_lines_in_turn_are_one_loop(judge: Judge[Finding]) -> None:
    assert not judge(drawing(80, second_file="other.py"))
    assert len(judge(drawing(120, second_file="other.py"))) == 1


TWO_LINES = """
    column = 10 us
    mark 1 | {step}
    cpu 1  | {loop}
    s = ProfilerStep#1
    a = aten::select; line = batch.py:4 get
    b = aten::select; line = batch.py:{line} get
    m = aten::mm
"""


def test_loops_one_after_the_other(judge: Judge[Finding]) -> None:
    def drawn(rounds: int, line: int) -> str:
        loops = f"{'a ' * rounds}{'b ' * rounds}"
        return TWO_LINES.format(step="s" * len(loops) + "ssss", loop=f"{loops}mmmm", line=line)

    assert len(judge(drawn(60, 400))) == 2
    [finding] = judge(drawn(30, 5))
    assert finding.count_per_step == 60
    assert not judge(drawn(30, 400))
    assert not judge(drawn(20, 5))


def test_a_pause_within_a_loop_is_not_part_of_its_time(judge: Judge[Finding]) -> None:
    assert not judge(drawing(48, pause_columns=100))
    [finding] = judge(drawing(80, pause_columns=100))
    assert finding.count_per_step == 80
    assert finding.saving.upper_ms == pytest.approx(0.8)
    [finding] = judge(drawing(120, pause_columns=100))
    assert finding.saving.upper_ms == pytest.approx(1.2)
    assert finding.saving.estimate_ms == pytest.approx(0.95 * 1.2)


COMPOSITE = """
    column = 1 us
    mark 1 | {step}
    cpu 1  | {loop}
    cpu 1  | {inner}
    cpu 2  | {backward}
    s = ProfilerStep#1
    a = aten::select; line = ge2e.py:4 loss
    c = aten::cosine_similarity; line = ge2e.py:5 loss
    d = aten::mul
    g = MulBackward0; forward = d
"""


def test_operators_that_call_many_others_are_dispatch(judge: Judge[Finding]) -> None:
    rounds = 60
    loop = 40 * rounds
    [finding] = judge(
        COMPOSITE.format(
            step="s" * (loop + 600),
            loop=("aa" + "c" * 30).ljust(40) * rounds,
            inner=("  " + "dd dd dd dd dd dd dd dd dd dd").ljust(40) * rounds,
            backward=" " * loop + "ggggg     " * 60,
        )
    )
    spent = {told.metric: told.value for told in finding.evidence}
    assert spent["host time of the loop"] == pytest.approx(2.4, rel=0.02)
    assert spent["host time of the loop's backward pass"] == pytest.approx(0.595)
    assert finding.saving.upper_ms == pytest.approx(3.0, rel=0.02)


UNEVEN = """
    column = 1 us
    mark 1 | {step}
    cpu 1  | {loop}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::select; line = cells.py:4 advance
    p = {operator}; line = cells.py:6 advance
"""


def uneven(rounds: int, *, operator: str = "aten::mul", steps: int = 1) -> str:
    """Draws loops whose rounds read three elements, and then do something that takes longer."""
    loop = ("a a a" + "pp".center(60)) * rounds
    each = [letter * len(loop) for letter in "stu"[:steps]]
    return UNEVEN.format(step="".join(each), loop=loop * steps, operator=operator)


def test_rounds_of_several_elements_and_a_long_body_are_a_loop(judge: Judge[Finding]) -> None:
    assert not judge(uneven(16))
    [finding] = judge(uneven(18))
    assert finding.where.line == 4
    assert finding.count_per_step == 18


def test_a_layer_between_the_elements_ends_a_loop(judge: Judge[Finding]) -> None:
    assert not judge(uneven(18, operator="aten::layer_norm"))


def test_elements_of_several_steps_are_no_loop(judge: Judge[Finding]) -> None:
    assert not judge(uneven(9, steps=3))


LARGE = """
    column = 10 us
    mark 1 | {step}
    cpu 1  | {loop}
    s = ProfilerStep#1
    a = aten::select; line = curve.py:4 update
    g = aten::ge; line = curve.py:5 update
    h = aten::sum; line = curve.py:6 update
"""


def test_a_loop_that_mostly_computes_is_left_out_and_large_operators_stay(
    judge: Judge[Finding],
) -> None:
    def told(rounds: str, many: int) -> list[Finding]:
        return judge(LARGE.format(step="s" * len(rounds) * many, loop=rounds * many))

    assert not told("agggggghhhhhh", 60)
    [finding] = told("a g a g a g a g a g hh", 12)
    # Of each round of 220 us, 20 us are a sum that computes; the last round ends with its element.
    assert finding.saving.upper_ms == pytest.approx(12 * 0.22 - 11 * 0.02 - 0.05, abs=0.011)


def test_operators_that_dispatch_or_were_interrupted_do_not_compute(
    judge: Judge[Finding],
) -> None:
    rounds = "agggggghhhhhh" * 60
    launches = LARGE.format(step="s" * len(rounds), loop=rounds)
    kernels = rounds.replace("a", " ").replace("g", "k").replace("h", "l")
    rows = f"    call 1 | {kernels}\n    gpu 7  | {kernels}\n    s = "
    assert len(judge(launches.replace("    s = ", rows, 1))) == 1
    once = "ag" * 60 + "aggg" + "ag" * 60
    [finding] = judge(LARGE.format(step="s" * len(once), loop=once))
    assert finding.saving.upper_ms == pytest.approx(2.43)  # to the end of the last element


PROGRAM = """
import torch

target = torch.zeros(200)

def step():
    for i in range(200):
        target[i] = i * 0.5
"""


@pytest.mark.torch
@pytest.mark.timed
def test_a_program_that_fills_a_tensor(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "fill.py"
    file.write_text(PROGRAM, encoding="utf-8")
    step = runpy.run_path(str(file))["step"]
    schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
    with selftime.profile(schedule=schedule, with_stack=True) as prof:
        for _ in range(5):
            step()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, Trace)
    [finding] = [o for o in rule(trace) if isinstance(o, Finding)]
    assert (finding.where.file, finding.where.function) == (str(file), "step")
    assert finding.count_per_step == 200
    assert finding.saving.speedup is not None
    assert finding.saving.speedup > 3


THROUGH = """
    column = 10 us
    mark 1   | {step}
    python 1 | {function}
    cpu 1    | {loop}
    s = ProfilerStep#1
    f = area.py(1): area
    u = aten::unbind; line = area.py:4 area; input_shapes = {shapes}
    a = aten::mul; line = area.py:5 area
    b = aten::mul; line = area.py:5 area
    c = aten::mm; line = area.py:6 area
    m = aten::mm; line = net.py:9 forward
"""


def through(
    body: str = "ab" * 50, shapes: str = "[[100,4],[]]", *, function_ends: int = 140
) -> str:
    loop = "u" + body
    step, function = "s" * 180, "f" * function_ends
    return THROUGH.format(step=step, function=function, loop=f"{loop:140}{'m' * 40}", shapes=shapes)


def test_a_loop_through_rows_is_told_at_its_own_line(judge: Judge[Finding]) -> None:
    [finding] = judge(through())
    assert (finding.where.line, finding.count_per_step) == (4, 100)
    assert finding.title.startswith("A Python loop goes through tensors 100 times a step")
    assert "`t.tolist()`" in finding.fix.text


@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        ("ab" * 50, "[[4,100],[]]"),  # x, y, z, w = t
        ("ab" * 50, "[[60,4],[]]"),  # more rounds than rows: a loop over something else
        ("ab" * 50, "[[300,4],[]]"),  # few of the rows
        ("ab" * 50, "[]"),  # without shapes nobody knows
        ("ac" * 50, "[[100,4],[]]"),  # rounds that multiply matrices
    ],
)
def test_what_follows_a_tensor_taken_apart_may_be_no_loop_through_it(
    judge: Judge[Finding], body: str, shapes: str
) -> None:
    assert not judge(through(body, shapes))


def test_what_runs_after_the_function_is_no_round(judge: Judge[Finding]) -> None:
    assert not judge(through(function_ends=40))


def test_a_loop_through_rows_that_indexes_them_is_one_finding(judge: Judge[Finding]) -> None:
    rows = through("ab" * 60, "[[60,4],[]]").replace("a = aten::mul", "a = aten::select")
    [finding] = judge(rows)
    assert finding.title.startswith("A Python loop indexes tensors")


ROUNDS = """
    column = 10 us
    mark 1 | {step}
    cpu 1  | {loop}
    s = ProfilerStep#1
    a = aten::select; line = fill.py:4 fill
    b = aten::select; line = fill.py:4 fill
    e = aten::select; line = fill.py:5 fill
    c = aten::copy_; line = fill.py:5 fill
    d = aten::add; line = fill.py:6 fill
    m = aten::mm
"""


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("ac" * 60, 60),
        ("abc" * 60, 60),  # out[i] = values[i]
        ("aceacbd" * 30, 30),  # several lines
        # What runs now and then tells no rounds.
        ("".join("ab" * (1 + n * n % 5) + "c" for n in range(30)), None),
    ],
)
def test_a_round_may_take_several_elements(
    judge: Judge[Finding], loop: str, rounds: int | None
) -> None:
    [finding] = judge(ROUNDS.format(step="s" * (len(loop) + 9), loop=f"{loop}mmmmmmmmm"))
    taken = sum(map(loop.count, "abe"))
    counts = {one.metric: one.value for one in finding.evidence if one.unit == "count"}
    assert counts.get("loop iterations a step") == rounds
    assert counts["elements taken a step"] == taken
    assert finding.count_per_step == (rounds or taken)
    assert ("rounds" in finding.title) is (rounds not in {None, taken})
