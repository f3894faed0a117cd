"""The line of an evaluation is none of the training around it."""

import pytest

from selftime.analysis.run.evaluations import line_of_evaluations
from selftime.testing import sketch

TRAINING = "program 450 ms at train.py:12 step"
VALIDATION = "program 100 ms at train.py:30 validate"
DRAWING = """
    run | before 1 s
    run | 20 training 100 ms
    run | 30 samples at train.py:12 step
    run | training 600 ms: evaluation 400 ms, {seen}
"""


@pytest.mark.parametrize(
    ("seen", "line"),
    [(f"{TRAINING}, {VALIDATION}", 30), (VALIDATION, 30), (TRAINING, None)],
)
def test_lines_of_steps_that_only_train_are_left_out(seen: str, line: int | None) -> None:
    found = line_of_evaluations(sketch(DRAWING.format(seen=seen)).run)
    assert (None if found is None else found["line"]) == line
