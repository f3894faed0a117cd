"""A rule that compares an operator with an equal one needs a measured time of both."""

from dataclasses import replace
from typing import Final

import polars as pl
import pytest

from selftime.advice import Finding, find
from selftime.testing import sketch

SQUARE_ROOTS: Final = """
    column = 100 us
    facts = {"settings": {"denormals": true, "flush_denormals": false}}
    mark 1 | ssssssssssssssssssssssssstttttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuuuuu
    cpu 1  | abbbbbbbbbbbbbbbbbbbbcc  abbbbbbbbbbbbbbbbbbbbcc  abbbbbbbbbbbbbbbbbbbbcc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]
    b = aten::sqrt; input_shapes = [[262144]]; input_types = ["float"]; input_strides = [[1]]
    c = aten::mm
"""


@pytest.mark.parametrize(("fast_ns", "findings"), [(100_000, 1), (0, 0)])
def test_an_operator_of_no_time_is_no_measure_of_an_equal_one(fast_ns: int, findings: int) -> None:
    """An operator has no time left where what its recording costs is taken off."""
    trace = sketch(SQUARE_ROOTS)
    is_fast = (pl.col("name") == "aten::sqrt") & (pl.col("duration") < 1_000_000)
    changed = pl.when(is_fast).then(pl.lit(fast_ns)).otherwise(pl.col("duration"))
    without_time = replace(trace, slices=trace.slices.with_columns(duration=changed))
    outcomes = find("denormal_numbers")(without_time)
    assert sum(isinstance(outcome, Finding) for outcome in outcomes) == findings
