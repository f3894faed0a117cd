"""Writes as text or JSON how a program's run time divides into phases such as steps and loading."""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import polars as pl
from rich.table import Table
from rich.text import Text

from selftime import names
from selftime.advice.advice_result import RunTime
from selftime.analysis.run.compilation_sites import compilations_with_sites
from selftime.analysis.run.evaluations import line_of_evaluations
from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.analysis.run.step_kinds import step_kinds
from selftime.analysis.run.step_trend import StepTrend, step_trend
from selftime.ledger_format import UNUSUAL_KIND_SUFFIX
from selftime.reports.advice.wording import file_and_line_text
from selftime.reports.labels import SLOW_STEP_CAUSE_LABELS
from selftime.reports.plain import cut_text_end, plain
from selftime.reports.recorded_slow_steps import recorded_slow_step_sentences
from selftime.reports.run_steps_text import (
    at_file_and_line_text,
    has_uncounted_steps,
    number_text,
    step_noun,
    text_of_steps,
)
from selftime.reports.terminal import render_as_text
from selftime.reports.wrapping import NamesText
from selftime.run import PHASES, Run
from selftime.units import (
    count_text,
    milliseconds_text,
    seconds_text,
    share_text,
    whole_percent_text,
)

FORMAT: Final = "selftime.run/1"

SMALL: Final = 0.01
"""Smallest share of the wall time that a phase of the run must take to be named in the text."""


def _table_of_parts(run: Run, root: str | None) -> Table:
    """Returns a table of each larger part's time, share of the run and what it is, longest first.

    What does not fit into a line goes on below its own text, not below the numbers.
    """
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True, min_width=9)
    table.add_column(justify="right", no_wrap=True, min_width=4)
    table.add_column()
    for row in _total_time_by_part(run).rows(named=True):
        if row["duration"] >= SMALL * run.wall_ns:
            share = whole_percent_text(row["duration"] / run.wall_ns)
            text = NamesText(_text_of_part(run, row, root))
            table.add_row(seconds_text(row["duration"]), share, text)
    return table


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
        "ended": end_of_run(run) if run.is_whole else None,
        "parts": [_json_object_of_part(row) for row in parts.rows(named=True)],
        "steps": {
            "kinds": [_json_object_of_step_kind(row) for row in step_kinds(run).rows(named=True)],
            "slow": [
                _json_object_of_slow_step(run, row)
                for row in _slow_steps_largest_excess_first(steps).rows(named=True)
            ],
            "trend": _json_object_of_trend(step_trend(run)),
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


def _part_phrase(part: str, run: Run) -> str:
    """Returns what the program does in a part of a run or step, to follow an amount of time."""
    if part == "data" and not run.segments["kind"].count():
        return "running the program"  # there is no first step before which it would be
    return SLOW_STEP_CAUSE_LABELS[part].phrase if part in SLOW_STEP_CAUSE_LABELS else part


def _text_of_part(run: Run, row: dict[str, Any], root: str | None) -> str:
    """Returns what the program does in a part of its run, and the line that takes most of it."""
    text = _part_phrase(row["part"], run)
    if row["part"] == "steps":
        return f"{text.removesuffix('steps')}{text_of_steps(run, row['count'], root)}"
    if row["part"] == "compile" and run.compilations.height:  # else the first has not ended
        text += f", {number_text(row['count'], 'compilation')}"
    if row["part"] == "imports" and row["what"]:
        text += f", most of it {plain(row['what'])}"
    if row["part"] == "evaluation":
        row = line_of_evaluations(run) or row
    return text + at_file_and_line_text(row, root)


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
        **{f"{phase}_ms": None if row[phase] is None else row[phase] / 1e6 for phase in PHASES},
        "backward_passes": row["passes"],
        "covered_s": row["covered"] / 1e9,
        "slow": row["slow"],
        "slow_excess_s": row["excess"] / 1e9,
    }


def _json_object_of_trend(trend: StepTrend | None) -> dict[str, Any] | None:
    if trend is None:
        return None
    first_ms, last_ms = trend.first_ns / 1e6, trend.last_ns / 1e6
    return {"kind": trend.kind, "first_ms": first_ms, "last_ms": last_ms, "change": trend.change}


def _trend_sentence(run: Run) -> str | None:
    """Returns how much slower or faster the steps became; None if they did not."""
    trend = step_trend(run)
    if trend is None:
        return None
    word = "slower" if trend.change > 0 else "faster"
    return (
        f"The {step_noun(trend.kind)}s became {share_text(abs(trend.change))} {word} over the run: "
        f"{milliseconds_text(trend.first_ns / 1e6)} at first, "
        f"{milliseconds_text(trend.last_ns / 1e6)} at last."
    )


def _json_object_of_slow_step(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": row["step"],
        "ms": row["duration"] / 1e6,
        "cause": row["cause"],
        "where": _json_object_of_source_location(row),
        "recording": run.recorded_slow_steps.get(row["id"]),
    }


def _json_object_of_source_location(row: dict[str, Any]) -> dict[str, Any] | None:
    if not row["file"]:
        return None
    return {"file": row["file"], "line": row["line"], "function": row["function"], "how": "stack"}


MIN_PART_SHARE: Final = 0.05
"""Smallest share of the run of a part that the sentence names; the table beside it has all."""
_MAX_PARTS: Final = 4
"""Largest number of parts that the sentence names."""
_MAX_REASON_CHARACTERS: Final = 60
"""Largest width of the reason of a recompilation."""


def as_text(
    run: Run,
    *,
    width: int = 80,
    colour: bool = False,
    root: str | None = None,
    slow_step_differences: Mapping[int, pl.DataFrame] = MappingProxyType({}),
) -> str:
    """Returns the account of a whole run as terminal text.

    `slow_step_differences` maps segments of the run to tables of `slow_step_difference`.
    """
    slow_steps = recorded_slow_step_sentences(run, root, slow_step_differences)
    return render_as_text(run_table(run, root, *slow_steps), width=width, colour=colour)


def run_table(run: Run, root: str | None = None, *more_lines: str) -> Table:
    """Returns the sentence on a run, a line for each of its larger parts, and further lines."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=6)
    table.add_row(Text("Run", "bold"), NamesText(run_sentence(run, root)))
    table.add_row("", _table_of_parts(run, root))
    for line in filter(None, [_trend_sentence(run), *more_lines]):
        table.add_row("", NamesText(line))
    return table


def run_sentence(run: Run, root: str | None = None) -> str:
    """Returns the wall time, the largest parts and the slow steps of a run as one sentence."""
    status = end_of_run(run)
    ended = "" if status is None else f" ({status})"
    parts = list(_largest_part_texts(run, root))
    told = f"{seconds_text(run.wall_ns)}{ended}"
    sentence = f"{told}: {', '.join(parts)}" if parts else told
    slow = _slowtext_of_steps(run, root)
    return f"{sentence}; {slow}." if slow else f"{sentence}."


def end_of_run(run: Run) -> str | None:
    """Returns how a run ended before its program's last line; None if it did not."""
    if not run.is_whole:
        return "incomplete: the process was killed, or still runs"
    return plain(str(run.facts["status"])) if run.was_cut else None


def recorded_steps_share_sentence(run: RunTime, *, has_recording: bool) -> str:
    """Returns how much of the run the recorded steps represent, if there is a recording."""
    has_steps = run.covered_s is not None and run.steps is not None
    if not has_recording:
        nothing = "Its recorded steps are not here" if has_steps else "No step was recorded"
        return f"{nothing}; all findings are about the whole run."
    if run.covered_s is None or run.steps is None:
        return "A part of the run was recorded that is none of its steps."
    steps = number_text(run.steps, f"{plain(run.kind or '')} step".strip())
    share = share_text(run.covered_s / run.wall_s) if run.wall_s else "all"
    covered = seconds_text(run.covered_s * 1e9)
    return f"The recorded steps represent {steps}: {covered}, {share} of the run."


def _largest_part_texts(run: Run, root: str | None) -> Iterator[str]:
    parts = run_parts(run)
    totals = parts.group_by("part").agg(pl.col("duration", "count").sum())
    totals = totals.sort("duration", "part", descending=[True, False])
    large = totals.filter(pl.col("duration") >= MIN_PART_SHARE * run.wall_ns).head(_MAX_PARTS)
    for part, duration, count in large.iter_rows():
        yield f"{seconds_text(duration)} {_part_text(run, parts, part, count, root)}"


def _part_text(run: Run, parts: pl.DataFrame, part: str, count: int, root: str | None) -> str:
    if part == "steps":
        kinds = parts.filter((pl.col("part") == "steps") & (pl.col("count") > 0))
        families = kinds["what"].str.strip_suffix(UNUSUAL_KIND_SUFFIX).unique()
        kind = f"{plain(str(families[0]))} " if families.len() == 1 else ""
        steps = number_text(count, f"{kind}step")
        if has_uncounted_steps(run):
            steps = f"more than {steps}" if count else "steps that were not counted"
        return f"in {steps}"
    phrase = _part_phrase(part, run)
    if part == "compile":
        return f"{phrase}{_compilations_text(run, root)}"
    if part == "epoch_boundary" and (made := _iterator_that_starts_workers(run)):
        return f"restarting workers{_line_text(made, root)}"
    return phrase


def _compilations_text(run: Run, root: str | None) -> str:
    """Returns in brackets how often functions were compiled, and why again; else empty."""
    again = (
        compilations_with_sites(run)
        .drop_nulls("reason")
        .sort("duration", descending=True, nulls_last=True, maintain_order=True)
    )
    if not run.compilations.height:
        return ""
    times = number_text(run.compilations.height, "time")
    if not again.height:
        return f" ({times})"
    row, placed = again.row(0, named=True), again.sort("how", nulls_last=True).row(0, named=True)
    reason = names.recompilation_reason(plain(row["reason"].partition("\n")[0]))
    because = _quoted(cut_text_end(reason, _MAX_REASON_CHARACTERS))
    place = _line_text(placed, root)
    recompilations = "a recompilation" if again.height == 1 else "recompilations"
    return f" ({times}, {again.height} of them {recompilations}: {because}{place})"


def _iterator_that_starts_workers(run: Run) -> dict[str, Any] | None:
    """Returns the line whose iterators started workers most often; None if none did so twice."""
    lines = run.iterators.filter("starts_workers").group_by("file", "line").len()
    lines = lines.filter(pl.col("len") > 1).sort("len", "file", "line", descending=True)
    return lines.row(0, named=True) if lines.height else None


def _slowtext_of_steps(run: Run, root: str | None) -> str:
    """Returns the number, extra time and main cause of slow steps as text; empty without any."""
    slow = steps_of_run(run).filter(pl.col("excess") > 0)
    if not slow.height:
        return ""
    cost = seconds_text(float(slow["excess"].sum()))
    verb = "step was" if slow.height == 1 else "steps were"
    text = f"{count_text(slow.height)} {verb} slow, by {cost}"
    causes = slow.drop_nulls("cause").group_by("cause", "file", "line").agg(pl.col("excess").sum())
    if not causes.height:
        return text
    row = causes.sort("excess", "cause", "line", descending=True).row(0, named=True)
    made = _iterator_that_starts_workers(run) if row["cause"] == "epoch_boundary" else None
    if made:
        return f"{text}, most as workers restart{_line_text(made, root)}"
    phrase = "" if row["cause"] == "program" else f" {_part_phrase(row['cause'], run)}"
    return f"{text}, most{phrase}{_line_text(row, root)}"


def _line_text(row: dict[str, Any], root: str | None) -> str:
    if not row.get("file"):
        return ""
    return f" at {_quoted(file_and_line_text(row['file'], row['line'], root))}"


def _quoted(text: str) -> str:
    """Returns a name of the program in backticks, as messages quote names."""
    return "`" + text.replace("`", "'") + "`"
