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
    ("source", "confidence"),
    [
        ("import pandas\ndef unused(): pandas.read()\n", "medium"),
        ("import pandas as pd\nclass Unused:\n  def read(self): pd.read()\n", "medium"),
        ("import pandas\ndef main(): print(1)\nmain()\n", "medium"),
        ("import pandas\ndef main(): read()\ndef read(): pandas.read()\nmain()\n", None),
        ("from pandas import (\n  DataFrame,\n)\nclass Own(DataFrame): pass\n", None),
        ("import pandas.io\nclass A:\n  def read(self): pandas.io\nA()\n", None),
        ("import pandas\ndef read(one=pandas.NA): pass\n", None),
        ("def main():\n  import pandas\nmain()\n", None),
        ("from pandas import *\n", "low"),
        ("not python", "low"),
    ],
)
def test_a_package_that_is_used_is_needed(
    rule: Rule, tmp_path: Path, source: str, confidence: str | None
) -> None:
    file = tmp_path / "train.py"
    file.write_text(source)
    line = 1 + source[: source.index("pandas")].count("\n") if "pandas" in source else 1
    run = RUN.replace("train.py:2", f"{file}:{line}")
    found = [one.confidence for one in rule(sketch(run)) if isinstance(one, Finding)]
    assert found == ([] if confidence is None else [confidence])


def test_a_small_package_is_checked(rule: Rule) -> None:
    [outcome] = rule(sketch(RUN.replace("pandas 2 s", "pandas 200 ms")))
    assert isinstance(outcome, Checked)
    assert "`pandas`" in outcome.reason
