"""Tests the rule `single_sample_calls` on edge cases that its documentation page omits."""

import textwrap
from pathlib import Path

import pytest

from selftime.advice.rule_definition import Checked, Finding, Outcome, Rule, Unknown
from selftime.testing import Judge, sketch

LOOP_IN_STEP = """
    column = 10 us
    facts = {{"cwd": "{folder}"}}
    mark 1   | {steps}
    python 1 | {main}
    python 1 | {function}
    python 1 | {calls}
    cpu 1    | {layers}
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = infer.py(1): main
    e = infer.py(2): encoded
    n = nn.Module: Net_0; module_id = 1
    a = <built-in method append of list object at 0x7f00>
    l = aten::{layer}; input_shapes = {shapes}
"""


def in_step(
    rounds: int,
    *,
    folder: object = ".",
    layer: str = "linear",
    shapes: str = "[[1,8],[4,8],[4]]",
) -> str:
    """Draws two steps, in each of which a function calls a model in a loop."""
    calls, width = "nna" * rounds, 3 * rounds + 1
    rows = {"function": "e" * (width - 1), "calls": calls, "layers": "l  " * rounds}
    drawn = {key: 2 * text.ljust(width) for key, text in rows.items()}
    steps, main = "s" * width + "t" * width, "f" * 2 * width
    return LOOP_IN_STEP.format(
        steps=steps, main=main, folder=folder, layer=layer, shapes=shapes, **drawn
    )


def with_source(folder: Path, body: str) -> str:
    source = f"def main():\n    pass\ndef encoded(model, xs, h=None, out=[]):\n{body}"
    (folder / "infer.py").write_text(source, encoding="utf-8")
    return in_step(8, folder=folder).replace("infer.py(2)", "infer.py(3)")


def test_independent_rounds_are_reported_with_the_line_of_the_call(
    judge: Judge[Finding], tmp_path: Path
) -> None:
    body = "    for x in xs:\n        out.append(\n            model(x)\n        )\n"
    [finding] = judge(with_source(tmp_path, body))
    assert (finding.where.line, finding.where.how) == (6, "static")
    assert finding.count_per_step == 8
    assert finding.semantics == "numerics"
    assert finding.saving.upper_ms == pytest.approx(0.16 * 7 / 8)


def test_rounds_that_need_the_one_before_are_no_finding(rule: Rule, tmp_path: Path) -> None:
    body = "    for x in xs:\n        h = model(x, h)\n"
    [outcome] = rule(sketch(with_source(tmp_path, body)))
    assert isinstance(outcome, Checked)
    assert "needs the one before" in outcome.reason


def test_a_model_that_keeps_its_state_is_no_finding(rule: Rule, tmp_path: Path) -> None:
    body = "    for x in xs:\n        out.append(model(x))\n"
    cell = "class Net:\n    def forward(self, x):\n        {} = self.cell(x, self.h)\n"
    for told, state in (("self.h", True), ("self.seen", False)):
        drawn = with_source(tmp_path, body)
        (tmp_path / "net.py").write_text(cell.format(told), encoding="utf-8")
        inner = "    python 1 | " + 2 * ("wwa" * 8).ljust(25).replace("a", " ") + "\n"
        text = drawn.replace("    cpu 1 ", f"{inner}    cpu 1 ", 1) + "    w = net.py(2): forward\n"
        [outcome] = rule(sketch(text))
        assert isinstance(outcome, Checked if state else Finding), outcome
        assert not isinstance(outcome, Checked) or "keeps `self.h`" in outcome.reason


def test_without_the_source_the_outcome_is_unknown(rule: Rule, tmp_path: Path) -> None:
    [outcome] = rule(sketch(in_step(8, folder=tmp_path)))
    assert isinstance(outcome, Unknown)


def test_fewer_calls_are_no_loop_over_samples(judge: Judge[Finding]) -> None:
    drawn = in_step(7).replace("encoded", "<listcomp>")
    assert not judge(drawn)
    assert judge(in_step(8).replace("encoded", "<listcomp>"))


@pytest.mark.parametrize(
    ("layer", "shapes", "is_single"),
    [
        ("linear", "[[8],[4,8],[4]]", True),
        ("linear", "[[2,8],[4,8],[4]]", False),
        ("linear", "[[16,1,8],[4,8],[4]]", False),
        ("conv2d", "[[3,32,32],[8,3,3,3],[8]]", True),
        ("conv2d", "[[1,3,32,32],[8,3,3,3],[8]]", True),
        ("conv2d", "[[4,3,32,32],[8,3,3,3],[8]]", False),
        ("embedding", "[[100,8],[1,16]]", True),
        ("embedding", "[[100,8],[16]]", False),
    ],
)
def test_the_first_layer_tells_whether_there_is_a_batch(
    judge: Judge[Finding], layer: str, shapes: str, *, is_single: bool
) -> None:
    drawn = in_step(8, layer=layer, shapes=shapes).replace("encoded", "<listcomp>")
    assert bool(judge(drawn)) is is_single


AS_STEPS = """
    column = 10 us
    facts = {{"cwd": "{folder}"}}
    mark 1   | sssttttuuuuvvvv
    python 1 | fffffffffffffff
    python 1 | nnannnannnannna
    cpu 1    | l  l   l   l
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    f = infer.py(5): main
    n = nn.Module: Net_0; module_id = 1
    a = <built-in method append of list object at 0x7f00>
    l = aten::linear; input_shapes = [[1,8],[4,8],[4]]
"""


def as_steps(rule: Rule, folder: Path, loop: str) -> list[Outcome]:
    """Judges a program whose loop over samples is the loop of its steps."""
    body = textwrap.indent(f"{loop}\n    y = model(x)\n    out.append(y)\n", "    ")
    (folder / "infer.py").write_text(f"def main(model):\n    out = []\n{body}", encoding="utf-8")
    return list(rule(sketch(AS_STEPS.format(folder=folder))))


def test_a_loop_of_steps_over_samples_is_reported(rule: Rule, tmp_path: Path) -> None:
    [outcome] = as_steps(rule, tmp_path, "for x in xs:")
    assert isinstance(outcome, Finding)
    assert outcome.where.line == 4
    assert outcome.count_per_step == 1


def test_a_loop_within_the_step_is_told_and_not_that_of_the_steps(judge: Judge[Finding]) -> None:
    """A model that itself goes through the samples of its batch is called once a step."""
    drawn = in_step(8).replace("encoded", "<listcomp>")
    whole = drawn.replace(
        "    cpu 1", "    python 1 | " + "w" * 24 + " " + "w" * 24 + "\n    cpu 1"
    )
    lines = whole.replace(
        "    a = <", "    w = nn.Module: Outer_0; module_id = 2\n    a = <"
    ).splitlines()
    order = [*lines[:5], lines[7], *lines[5:7], *lines[8:]]
    [finding] = judge("\n".join(order))
    assert finding.where.function == "<listcomp>"


def test_samples_that_come_one_by_one_are_no_finding(rule: Rule, tmp_path: Path) -> None:
    [outcome] = as_steps(rule, tmp_path, "while True:\n    x = queue.get()")
    assert isinstance(outcome, Checked)


PARTS = """
    column = 10 us
    facts = {{"cwd": "{folder}"}}
    mark 1   | ssssssttttttuuuuuuvvvvvv
    python 1 | ffffffffffffffffffffffff
    python 1 | mmmmm mmmmm mmmmm mmmmm
    python 1 | aa bb aa bb aa bb aa bb
    cpu 1    | x  y  x  y  x  y  x  y
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    f = infer.py(3): main
    m = nn.Module: GPT_0; module_id = 1
    a = nn.Module: Embedding_0; module_id = 2
    b = nn.Module: Embedding_1; module_id = 3
    x = aten::embedding; input_shapes = [[64,8],[1,64]]
    y = aten::embedding; input_shapes = [[100,8],[{rows},64]]
"""


@pytest.mark.parametrize(("rows", "is_single"), [(4, False), (1, True)])
def test_positions_have_one_row_for_all_samples(
    rule: Rule, tmp_path: Path, rows: int, *, is_single: bool
) -> None:
    (tmp_path / "infer.py").write_text(
        "def main(model):\n    for x in xs:\n        out.append(model(x))\n", encoding="utf-8"
    )
    [outcome] = rule(sketch(PARTS.format(folder=tmp_path, rows=rows)))
    assert isinstance(outcome, Finding) is is_single, outcome
    assert is_single or "no loop calls" in getattr(outcome, "reason", "")


def test_a_loop_of_a_library_is_none_of_the_function_that_calls_the_library(
    rule: Rule, tmp_path: Path
) -> None:
    """The source of `main` has a loop, but its one round makes all tokens."""
    [outcome] = as_steps(rule, tmp_path, "for x in xs:")
    assert isinstance(outcome, Finding)
    text = AS_STEPS.format(folder=tmp_path).replace(
        "    python 1 | nna", "    python 1 | ggggggggggggggg\n    python 1 | nna"
    )
    library = "    g = fairseq/sequence_generator.py(339): _generate\n"
    [outcome] = rule(sketch(text + library))
    assert isinstance(outcome, Checked)


RECURRENT = """
    column = 10 us
    mark 1   | {mark}
    python 1 | {main}
    python 1 | {listed}
    python 1 | {calls}
    cpu 1    | {layers}
    cpu 1    | {inner}
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = infer.py(1): main
    e = infer.py(2): <listcomp>
    n = nn.Module: Net_0; module_id = 1
    b = aten::embedding; input_shapes = [[100,8],{tokens}]
    r = aten::{layer}
    l = aten::linear; input_shapes = {inner_shapes}
"""


@pytest.mark.parametrize(
    ("layer", "inner_shapes", "is_single"),
    [
        # One round of 50 sequences, and 50 rounds of one: batch_first swaps them.
        ("gru; input_shapes = [[1,50,8],[1,50,4]]", "[[1,50,8],[12,8]]", False),
        ("gru; input_shapes = [[1,50,8],[1,1,4]]", "[[50,1,8],[12,8]]", True),
        ("lstm; input_shapes = [[1,50,8],[[1,50,4],[1,50,4]]]", "[[1,50,8],[16,8]]", False),
        ("lstm; input_shapes = [[1,50,8],[[1,1,4],[1,1,4]]]", "[[50,1,8],[16,8]]", True),
        ("rnn_tanh; input_shapes = [[8,8],[5],[1,2,4]]", "[[2,8],[4,8]]", False),  # packed
        ("rnn_tanh; input_shapes = [[5,8],[5],[1,1,4]]", "[[1,8],[4,8]]", True),
        ("gru_cell; input_shapes = [[50,8],[50,4]]", "[[50,8],[12,8]]", False),
        ("gru_cell; input_shapes = [[1,8],[1,4]]", "[[1,8],[12,8]]", True),
        ("gru; input_shapes = []", "[[1,50,8],[12,8]]", False),
    ],
)
@pytest.mark.parametrize("tokens", ["[1,50]", "[50]"])
def test_the_state_of_a_recurrent_layer_tells_its_batch(
    judge: Judge[Finding], layer: str, inner_shapes: str, tokens: str, *, is_single: bool
) -> None:
    rounds = 8
    drawn = RECURRENT.format(
        mark="s" * 5 * rounds + "t" * 5 * rounds,
        main="f" * 10 * rounds,
        listed=("e" * (5 * rounds - 1) + " ") * 2,
        calls="nnnn " * rounds * 2,
        layers="brrr " * rounds * 2,
        inner="  l  " * rounds * 2,
        layer=layer,
        inner_shapes=inner_shapes,
        tokens=tokens,
    )
    assert bool(judge(drawn)) is is_single
