"""Tests which loops in source code need an earlier round."""

import ast
import textwrap

import pytest

from selftime.advice.lines.loop_dependence import (
    attributes_kept_between_calls,
    calls_in_loops,
    does_round_need_earlier_one,
)

INDEPENDENT = (
    "for x in xs:\n    out.append(model(x))",
    "for i in range(n):\n    x = prepare(xs[i])\n    y = model(x)\n    out[i] = y.argmax()",
    "for x, y in loader:\n    p = model(x)\n    right += (p.argmax() == y).sum()",
    "out = [model(x) for x in xs]",
    "for x in xs:\n    loss = loss + model(x).mean()",
    "for x in xs:\n    self.found.append(self.model(x))",
    "for x in xs:\n    with no_grad():\n        y = model(x)\n    if y.max() > 0:\n        n += 1",
)
DEPENDENT = (
    "for x in xs:\n    h = model(x, h)",
    "for t in range(n):\n    y = model(y)\n    out.append(y)",
    "for t in range(n):\n    a = model(s).argmax()\n    s, r = env.step(a)",
    "while len(tokens) < n:\n    tokens.append(model(tokens))",
    "for x in xs:\n    self.h = model(x, self.h)",
    "for t in range(n):\n    x = cat(x, z)\n    z = model(x)",
    "for x in xs:\n    y = model(x)\n    if y < 0.1:\n        break",
    "while not done:\n    y = model(x)\n    done = y > 1",
    "for a in actions:\n    s = env.model(a)\n    env.store(s)",
    "for t in ts:\n    memory.add(model(memory.read(t)))",
    "for x in xs:\n    s = state\n    y = model(s)\n    if y > 0:\n        state = x",
)


def needs_earlier(source: str) -> bool:
    scope = ast.parse(textwrap.dedent(source))
    [found] = [call for name, call in calls_in_loops(scope) if name == "model"]
    return does_round_need_earlier_one(found)


@pytest.mark.parametrize("source", INDEPENDENT)
def test_rounds_without_results_of_earlier_ones_are_independent(source: str) -> None:
    assert not needs_earlier(source)


@pytest.mark.parametrize("source", DEPENDENT)
def test_a_round_that_takes_an_earlier_result_is_dependent(source: str) -> None:
    assert needs_earlier(source)


def test_a_call_in_the_expression_that_is_iterated_is_in_no_loop() -> None:
    assert not list(calls_in_loops(ast.parse("for x in model(xs):\n    y = x + 1")))


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("self.h = self.cell(x, self.h)", ["h"]),
        ("self.calls += 1", ["calls"]),
        ("self.last = x", []),
        ("other.h = other.h + x", []),
        ("return self.cell(x)", []),
    ],
)
def test_attributes_that_a_method_sets_and_reads_are_kept(body: str, kept: list[str]) -> None:
    method = ast.parse(f"def forward(self, x, other):\n    {body}").body[0]
    assert isinstance(method, ast.FunctionDef)
    assert attributes_kept_between_calls([method]) == kept
