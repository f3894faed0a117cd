"""The parts of a run add up to its wall time, and each is what it should be."""

from collections.abc import Sequence

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.run import COUNTED, PHASES, RUN_READINGS, RUN_SEGMENTS, Run
from selftime.testing import sketch

MS = 1_000_000


def run(
    *segments: tuple[str | None, int, dict[str, int]],
    readings: Sequence[tuple[int, str, str | None, int | None, int]] = (),
) -> Run:
    """A run of segments (kind, ms, counted ms); readings (segment, part, what, line, ms)."""
    rows, start = [], 10
    for number, (kind, duration, counted) in enumerate(segments):
        columns = [counted.get(name, 0) * MS for name in schema_counted()]
        rows.append(
            (number, start * MS, duration * MS, kind, *columns, False, *[None] * (len(PHASES) + 2))
        )
        start += duration
    read = [
        (segment, part, what, None if line is None else "a.py", line, None, ms * MS, 1)
        for segment, part, what, line, ms in readings
    ]
    return Run(
        segments=pl.DataFrame(rows, schema=dict(RUN_SEGMENTS.dtypes), orient="row"),
        readings=pl.DataFrame(read, schema=dict(RUN_READINGS.dtypes), orient="row"),
        startup_ns=10 * MS,
    )


def schema_counted() -> list[str]:
    return [c.name for c in RUN_SEGMENTS.columns if c.name in COUNTED]


def parts(of: Run) -> dict[tuple[str, str | None], int]:
    table = run_parts(of).group_by("part", "what").agg(pl.col("duration").sum() // MS)
    return {(part, what): duration for part, what, duration in table.rows()}


def test_a_run_without_segments_is_its_start() -> None:
    assert parts(Run(startup_ns=10 * MS)) == {("start", "interpreter"): 10}


def test_setting_up_steps_and_the_end_are_told_apart() -> None:
    assert parts(run((None, 50, {}), ("training", 5, {}), ("training", 6, {}), (None, 7, {}))) == {
        ("start", "interpreter"): 10,
        ("data", None): 50,
        ("steps", "training"): 11,
        ("end", None): 7,
    }


def test_a_program_without_steps_has_no_end_of_its_own() -> None:
    assert parts(run((None, 50, {}))) == {("start", "interpreter"): 10, ("data", None): 50}


def test_what_was_counted_is_a_part_and_the_first_wait_is_the_first_batch() -> None:
    first, later = {"data_wait": 4, "epoch_boundary": 1}, {"data_wait": 2, "compile": 1}
    found = parts(run((None, 50, {}), ("training", 9, first), ("training", 5, later)))
    assert found["first_batch", None] == 5
    assert found["data_wait", None] == 2
    assert found["compile", None] == 1
    assert found["steps", "training"] == 4 + 2


def test_the_rest_of_a_segment_is_shared_among_what_was_read_in_it() -> None:
    of = run(
        (None, 50, {"compile": 10}),
        ("training", 5, {}),
        readings=[(0, "imports", "torch", None, 30), (0, "program", None, 3, 10)],
    )
    found = parts(of)
    assert found["imports", "torch"] == 30
    assert found["data", None] == 10
    assert run_parts(of).filter(pl.col("part") == "data")["line"].to_list() == [3]


@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 10**9)), max_size=8),
    st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(["imports", "program"]), st.integers(1, 9))
    ),
)
def test_the_parts_add_up_to_the_wall_time(
    segments: list[tuple[str | None, int]], readings: list[tuple[int, str, int]]
) -> None:
    drawn = [(kind, duration, {"data_wait": duration // 3}) for kind, duration in segments]
    kept = [(n, part, None, None, ms) for n, part, ms in readings if n < len(segments)]
    of = run(*drawn, readings=kept)
    assert run_parts(of)["duration"].sum() == of.wall_ns


def test_a_slow_step_has_a_cause_and_a_line() -> None:
    usual: list[tuple[str | None, int, dict[str, int]]] = [("training", 10, {})] * 9
    of = run(
        *usual,
        ("training", 200, {"evaluation": 150}),
        ("training", 100, {}),
        readings=[(10, "checkpoint", None, 8, 60), (10, "program", None, 9, 20)],
    )
    slow = steps_of_run(of).filter(pl.col("excess") > 0)
    assert slow.select("step", "cause", "line").rows() == [
        (9, "evaluation", None),
        (10, "checkpoint", 8),
    ]
    assert (slow["excess"] // MS).to_list() == [190, 90]


def test_steps_of_another_kind_are_not_slow() -> None:
    assert steps_of_run(run(("a", 1, {}), ("b", 500, {})))["excess"].sum() == 0


def test_a_step_that_makes_an_iterator_is_told_with_the_line_that_makes_it() -> None:
    """No stack is read meanwhile: what was read in the step is of another line."""
    run = sketch(
        """
        run | 10 training 100 ms
        run | iterator 500 ms with 2 new workers at train.py:9 main
        run | training 700 ms: epoch_boundary 550 ms, program 90 ms at train.py:30 main
        run | 5 training 100 ms
        """
    ).run
    [slow] = steps_of_run(run).filter(pl.col("excess") > 0).rows(named=True)
    assert (slow["cause"], slow["line"], slow["function"]) == ("epoch_boundary", 9, "main")


def test_a_step_that_stacks_explain_is_counted() -> None:
    drawn = """
        run | before 1 s
        run | 3 training 10 ms
        run | inference 100 ms: program 100 ms at train.py:9 main
    """
    steps = run_parts(sketch(drawn).run).filter(pl.col("part") == "steps")
    assert steps["count"].sum() == 4
    assert steps["duration"].sum() == 130 * MS
