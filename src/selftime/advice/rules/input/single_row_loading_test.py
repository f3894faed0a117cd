"""Tests the rule `single_row_loading` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

DRAWING = """
    column = 10 us
    mark 1   | {step}
    mark 1   | {loading}
    python 1 | {fetch}
    python 1 | {samples}
    python 1 | {rows}
    cpu 1    | {operators}
    s = ProfilerStep#1
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    g = torch/utils/data/dataset.py(205): __getitem__
    x = torch/utils/data/dataset.py(206): <genexpr>
    h = data.py(12): __getitem__
    e = aten::select
    a = aten::mm
"""


def drawing(rows: int = 32, *, samples: str = "g", working: int = 20) -> str:
    loading = 2 * rows + 2
    return DRAWING.format(
        step="s" * (loading + working),
        loading="d" * loading,
        fetch="f" * loading,
        samples=samples * (loading - 1),
        rows="x " * rows,
        operators=("e " * rows).ljust(loading) + "a" * working,
    )


def test_a_loader_over_rows_is_reported(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing())
    assert finding.fix.argument is not None
    assert finding.fix.argument.of == "loader"  # so that the line is told that creates it
    assert finding.count_per_step == 32
    assert finding.saving.estimate_ms == pytest.approx(0.9 * 0.66)
    assert finding.saving.upper_ms == pytest.approx(0.66)


def test_few_rows_are_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing(31))


def test_a_data_set_of_the_program_around_them_is_not_reported(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing(samples="h")))
    assert isinstance(outcome, Checked)


def test_loading_that_is_a_small_part_of_the_step_is_ruled_out(rule: Rule) -> None:
    [outcome] = rule(sketch(drawing(working=700)))
    assert isinstance(outcome, Checked)
    assert outcome.upper_ms == pytest.approx(0.66)


def test_indexes_of_whole_batches_are_no_rows(judge: Judge[Finding]) -> None:
    assert not judge(drawing().replace("aten::select", "aten::index"))
