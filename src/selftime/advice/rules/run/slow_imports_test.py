"""Tests the rule `slow_imports` on sketched runs."""

from pathlib import Path

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

RUN = """
    run | before 4 s: imports pandas 2 s at train.py:2, imports torch 2 s at train.py:1
    run | 20 training 100 ms
"""


def test_a_package_and_what_it_imports(judge: Judge[Finding]) -> None:
    [finding] = judge(RUN)
    assert "`pandas`" in finding.title
    assert finding.where.line == 2
    assert finding.saving.run_s is None
    assert finding.saving.run_upper_s == pytest.approx(2)


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("import pandas\ndef main(): print(1)\nmain()\n", True),
        ("import pandas as pd\nprint('pandas')\n", True),
        ("import pandas\ndef unused(): pandas.read()\n", False),
        ("from pandas import (\n  DataFrame,\n)\nclass Own(DataFrame): pass\n", False),
        ("import pandas\ndef read(one=pandas.NA): pass\n", False),
        ("from pandas import NA\n__all__ = ['NA']\n", False),
        ("def main():\n  import pandas\nmain()\n", False),
        ("try:\n  import pandas\nexcept ImportError: pass\n", False),
        ("from pandas import *\n", False),
        ("not python: pandas", True),
    ],
)
def test_a_package_that_is_used_is_needed(
    rule: Rule, tmp_path: Path, source: str, *, is_found: bool
) -> None:
    file = tmp_path / "train.py"
    file.write_text(source)
    line = 1 + source[: source.index("pandas")].count("\n")
    outcomes = rule(sketch(RUN.replace("train.py:2", f"{file}:{line}")))
    found = [one.confidence for one in outcomes if isinstance(one, Finding)]
    assert found == (["low"] if is_found else [])


@pytest.mark.parametrize("place", ["", " at /lib/site-packages/own/__init__.py:2"])
def test_what_a_library_imports_may_be_needed(rule: Rule, place: str) -> None:
    outcomes = rule(sketch(RUN.replace(" at train.py:2", place)))
    assert all(isinstance(one, Checked) for one in outcomes)


def test_a_small_package_is_checked(rule: Rule) -> None:
    [outcome] = rule(sketch(RUN.replace("pandas 2 s", "pandas 200 ms")))
    assert isinstance(outcome, Checked)
    assert "`pandas`" in outcome.reason
