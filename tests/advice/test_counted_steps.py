"""Which slices begin within slices that enclose them, such as operators within a backward pass."""

import polars as pl

from selftime.advice.detectors.counted_steps import begins_within_enclosing


def slices(*rows: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"track": pl.UInt32, "start": pl.Int64, "end": pl.Int64}, orient="row"
    )


def test_the_begin_counts_on_the_same_track() -> None:
    asked = slices((0, 5, 30), (0, 10, 11), (1, 5, 6))
    assert begins_within_enclosing(asked, slices((0, 5, 10))).tolist() == [True, False, False]


def test_nothing_begins_within_slices_without_duration() -> None:
    asked = slices((0, 5, 6))
    assert begins_within_enclosing(asked, slices((0, 5, 5))).tolist() == [False]
    assert begins_within_enclosing(asked, slices()).tolist() == [False]
