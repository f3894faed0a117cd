"""Writes as text or JSON how a program's run time divides into phases such as steps and loading."""

import json
from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.analysis.run.step_kinds import step_kinds
from selftime.ledger_format import UNCOUNTED_STEPS_NAME
from selftime.reports.advice.wording import relative_file
from selftime.reports.plain import plain
from selftime.run import Run
from selftime.units import seconds_text

FORMAT: Final = "selftime.run/1"

SMALL: Final = 0.01
"""Smallest share of the wall time that a phase of the run must take to be named in the text."""

PHRASE_BY_PART: Final = {
    "start": "starting Python",
    "imports": "importing",
    "data": "building data and model",
    "first_batch": "for the first batch",
    "compile": "compiling",
    "steps": "in steps",
    "data_wait": "waiting for data",
    "evaluation": "in evaluation",
    "checkpoint": "reading and writing checkpoints",
    "epoch_boundary": "starting iterators of DataLoaders",
    "garbage_collection": "in garbage collections of Python",
    "logging": "logging",
    "recording": "recording, by selftime",
    "end": "after the last step",
    "other": "in work that does not repeat",
}
"""What the program does in each part of a run, after its time."""


def part_lines(run: Run, *, root: str | None = None) -> Iterator[str]:
    """Yields a line for each larger part of a run, the longest first."""
    for row in _total_time_by_part(run).rows(named=True):
        if row["duration"] >= SMALL * run.wall_ns:
            yield _text_line_of_part(run, row, root)


def as_json(run: Run) -> dict[str, Any]:
    """Returns a run as the JSON object `selftime.run/1`: phases in s, steps in ms."""
    parts = run_parts(run)
    recording_ns = float(parts.filter(pl.col("part") == "recording")["duration"].sum())
    steps = steps_of_run(run)
    return {
        "format": FORMAT,
        "wall_s": run.wall_ns / 1e9,
        "overhead_s": recording_ns / 1e9,
        "is_whole": run.is_whole,
        "parts": [_json_object_of_part(row) for row in parts.rows(named=True)],
        "steps": {
            "kinds": [_json_object_of_step_kind(row) for row in step_kinds(run).rows(named=True)],
            "slow": [
                _json_object_of_slow_step(row)
                for row in _slow_steps_largest_excess_first(steps).rows(named=True)
            ],
            "trend": None,
        },
    }


def as_json_text(run: Run) -> str:
    """Returns a run as the text of a JSON object `selftime.run/1`."""
    return json.dumps(as_json(run), allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def _total_time_by_part(run: Run) -> pl.DataFrame:
    """Returns each phase's total time in ns and costliest source line, longest phase first."""
    parts = run_parts(run)
    largest = pl.col("duration").arg_max()
    named = parts.filter(pl.col("file").is_not_null() | pl.col("what").is_not_null())
    places = named.group_by("part").agg(pl.col("file", "line", "what").get(largest))
    summed = parts.group_by("part").agg(pl.col("duration", "count").sum())
    joined = summed.join(places, on="part", how="left")
    return joined.sort("duration", "part", descending=[True, False])


def _text_line_of_part(run: Run, row: dict[str, Any], root: str | None) -> str:
    share = row["duration"] / run.wall_ns
    phrase = PHRASE_BY_PART.get(row["part"], row["part"])
    text = f"{seconds_text(row['duration']):>9} {share:4.0%} {phrase}"
    if row["part"] == "steps":
        steps = count_text(row["count"], "step")
        if has_uncounted_steps(run):
            steps = f"more than {steps}" if row["count"] else "steps that were not counted"
        return f"{text.removesuffix('steps')}{steps}{_step_loop_text(run, root)}"
    if row["part"] == "compile":
        text += f", {count_text(row['count'], 'compilation')}"
    if row["part"] == "imports" and row["what"]:
        text += f", most of it {plain(row['what'])}"
    return text + _at_file_and_line_text(row, root)


def has_uncounted_steps(run: Run) -> bool:
    """Returns whether the run made steps that the ledger did not count one by one."""
    kinds = run.segments["kind"].cast(pl.String)
    return bool((kinds == UNCOUNTED_STEPS_NAME).any())


def _step_loop_text(run: Run, root: str | None) -> str:
    """Returns text with file and line of the loop that took most step time; empty if unknown."""
    kinds = run.segments.group_by(pl.col("kind").cast(pl.String)).agg(pl.col("duration").sum())
    known = [
        row for row in kinds.sort("duration", descending=True).rows() if row[0] in run.loop_lines
    ]
    if not known:
        return ""
    file, line = run.loop_lines[known[0][0]]
    return f" of the loop at {plain(relative_file(file, root))}:{line}"


def _at_file_and_line_text(row: dict[str, Any], root: str | None) -> str:
    if not row.get("file"):
        return ""
    return f" at {plain(relative_file(row['file'], root))}:{row['line']}"


def count_text(count: int, noun: str) -> str:
    """Returns a count with its noun, such as `1,200 steps`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _slow_steps_largest_excess_first(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.filter(pl.col("excess") > 0).sort("excess", descending=True)


def _json_object_of_part(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "part": row["part"],
        "s": row["duration"] / 1e9,
        "count": row["count"],
        "where": _json_object_of_source_location(row),
        "text": row["what"],
    }


def _json_object_of_step_kind(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": row["kind"],
        "loop": None if row["file"] is None else {"file": row["file"], "line": row["line"]},
        "count": row["count"],
        "median_ms": row["median"] / 1e6,
        "p95_ms": row["p95"] / 1e6,
        "data_wait_ms": row["data_wait"] / 1e6,
        "covered_s": row["covered"] / 1e9,
        "slow": row["slow"],
        "slow_excess_s": row["excess"] / 1e9,
    }


def _json_object_of_slow_step(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": row["step"],
        "ms": row["duration"] / 1e6,
        "cause": row["cause"],
        "where": _json_object_of_source_location(row),
    }


def _json_object_of_source_location(row: dict[str, Any]) -> dict[str, Any] | None:
    if not row["file"]:
        return None
    return {"file": row["file"], "line": row["line"], "function": row["function"], "how": "stack"}
