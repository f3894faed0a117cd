"""Writes a benchmark of a program before and after a change as text, JSON or Markdown."""

from textwrap import fill
from typing import Final

from rich.table import Table
from rich.text import Text

from selftime import units
from selftime.bench.confidence_intervals import MIN_ROUNDS_FOR_INTERVAL
from selftime.bench.result import (
    Bench,
    BenchMetric,
    EstimateWithInterval,
    ProgramRun,
    ProgramTimes,
    StopReason,
)
from selftime.reports.advice.markdown import code_span, escape_markdown
from selftime.reports.plain import cut_text_middle, plain
from selftime.reports.terminal import render_as_text

_MAX_COMMAND_CHARACTERS: Final = 200
"""Largest number of characters of a program's command line; a longer one loses its middle."""
_MIN_RATIO_WITH_ONLY_TWO_DECIMALS: Final = 10
"""Smallest ratio that is written with two decimals instead of three."""


def as_text(bench: Bench, *, width: int = 80, colour: bool = False) -> str:
    """Returns a benchmark's result as text: speed-up, times, why the benchmark stopped, notes."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("", *_times_table_column_titles(bench), style="dim")
    for name, program in (("before", bench.before), ("after", bench.after)):
        table.add_row(
            name,
            *_times_table_cells_of_program(
                bench, program, _runs_before_or_after_change(bench, name)
            ),
        )
    parts: list[Text | Table] = [Text(bench_headline(bench), style="bold"), Text(), table, Text()]
    page = render_as_text(*parts, width=width, colour=colour)
    sentences = [*_result_sentences(bench), *(f"- {note}" for note in _bench_notes(bench))]
    sentences += [
        f"{name:6}  {_program_command_line_text(program)}"
        for name, program in _before_and_after_with_names(bench)
    ]
    lines = (fill(plain(sentence), width, subsequent_indent="  ") for sentence in sentences)
    return page + "\n".join(lines) + "\n"


def as_markdown(bench: Bench) -> str:
    """Returns a benchmark's speed-up, times and notes as Markdown, for a pull request."""
    columns = _times_table_column_titles(bench)
    lines = [f"**{bench_headline(bench)}**", ""]
    lines += [f"| | {' | '.join(columns)} | program |", "|---" * (len(columns) + 2) + "|"]
    for name, program in _before_and_after_with_names(bench):
        row = " | ".join(
            _times_table_cells_of_program(bench, program, _runs_before_or_after_change(bench, name))
        )
        lines.append(f"| {name} | {row} | {code_span(_program_command_line_text(program))} |")
    for sentence in _result_sentences(bench):
        lines += ["", escape_markdown(sentence)]
    notes = _bench_notes(bench)
    lines += ["", *(f"- {escape_markdown(note)}" for note in notes)] if notes else []
    return "\n".join(lines) + "\n"


def as_json(bench: Bench) -> str:
    """Returns a benchmark in the JSON form `selftime.bench/1` (docs/formats.md)."""
    return bench.to_json()


def bench_headline(bench: Bench) -> str:
    """Returns whether the program became faster, and how many times as fast, in one line."""
    if len(bench.rounds) < MIN_ROUNDS_FOR_INTERVAL:
        return _headline_of_too_few_rounds(bench)
    state_texts = {"faster": "Faster", "slower": "Slower", "not told": "No clear difference"}
    state, interval = state_texts[bench.state], _ratio_interval_in_brackets(bench.speedup)
    return f"{state}: {_speedup_estimate_text(bench.speedup)} as fast{interval}"


def _headline_of_too_few_rounds(bench: Bench) -> str:
    """Returns the speed-up of the rounds, and that they are too few to say how sure it is."""
    count, speedups = len(bench.rounds), bench.speedups_of_rounds
    rounds, suffice = ("1 round", "does") if count == 1 else (f"{count} rounds", "do")
    spread = ""
    if count > 1 and speedups:
        spread = (
            f", from {_ratio_text(min(speedups))} to {_ratio_text(max(speedups))} in each round"
        )
    return (
        f"Not sure: {_speedup_estimate_text(bench.speedup)} as fast{spread}; {rounds} {suffice} "
        f"not suffice for an interval, {MIN_ROUNDS_FOR_INTERVAL} are needed"
    )


def _speedup_estimate_text(speedup: EstimateWithInterval) -> str:
    return f"{_ratio_text(speedup.estimate)} times"


def _ratio_interval_in_brackets(bounds: EstimateWithInterval) -> str:
    if bounds.low is None or bounds.high is None:
        return " (interval unknown)"
    return f" ({_ratio_text(bounds.low)} to {_ratio_text(bounds.high)}, 95 %)"


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= _MIN_RATIO_WITH_ONLY_TWO_DECIMALS else f"{ratio:.3f}"


def _before_and_after_with_names(bench: Bench) -> tuple[tuple[str, ProgramTimes], ...]:
    """Returns two pairs (name, times): the program before and after the change."""
    return ("before", bench.before), ("after", bench.after)


def _runs_before_or_after_change(bench: Bench, program: str) -> list[ProgramRun]:
    """Returns all runs of one version of the program: before or after the change."""
    return [
        bench_round.before if program == "before" else bench_round.after
        for bench_round in bench.rounds
    ]


def _program_command_line_text(program: ProgramTimes) -> str:
    """Returns a program's command line without control characters, shortened in the middle."""
    return cut_text_middle(plain(program.program), _MAX_COMMAND_CHARACTERS)


def _times_table_column_titles(bench: Bench) -> list[str]:
    """Returns the column titles of the table of step times and process times."""
    if bench.metric is BenchMetric.process:
        return ["whole process", "middle half of rounds"]
    return ["step", "middle half of rounds", "steps a run", "whole process"]


def _times_table_cells_of_program(
    bench: Bench, program: ProgramTimes, runs: list[ProgramRun]
) -> list[str]:
    """Returns one program's table row: median times, how much they vary, and numbers of steps."""
    interval = units.time_range_text(program.low_ms * 1e6, program.high_ms * 1e6)
    cells = [units.milliseconds_text(program.median_ms), interval]
    if bench.metric is BenchMetric.process:
        return cells
    steps = sorted(run.steps for run in runs)[len(runs) // 2]
    left_out = sorted(run.warm_up + run.unusual_steps for run in runs)[len(runs) // 2]
    return [
        *cells,
        f"{steps:,} ({left_out:,} left out)",
        units.milliseconds_text(program.process_ms),
    ]


def _result_sentences(bench: Bench) -> list[str]:
    """Returns sentences: time saved, speed-up of whole processes, why the benchmark stopped."""
    unit = "a step" if bench.metric is BenchMetric.step else "a process"
    saved = bench.saved_ms
    interval = "interval unknown"
    if saved.low is not None and saved.high is not None:
        interval = f"{units.time_range_text(saved.low * 1e6, saved.high * 1e6)}, 95 %"
    sentences = [f"Saved: {units.milliseconds_text(saved.estimate)} {unit} ({interval})."]
    if bench.metric is BenchMetric.step:
        ratio = bench.before.process_ms / bench.after.process_ms
        sentences.append(f"Whole processes, by their medians: {_ratio_text(ratio)} times as fast.")
    count = len(bench.rounds)
    rounds = (
        f"{count} round{'' if count == 1 else 's'} in {units.seconds_text(bench.seconds * 1e9)}"
    )
    return [*sentences, f"Stopped after {rounds}: {_stop_reason_sentence(bench)}."]


def _stop_reason_sentence(bench: Bench) -> str:
    """Returns why the benchmark stopped, and the precision that it reached, as text."""
    precision = f"±{units.share_text(bench.precision)}"
    reason = {
        StopReason.precise: f"the interval is within {precision}",
        StopReason.rounds: f"`--max-rounds` is reached before {precision}",
        StopReason.time: f"`--max-seconds` is reached before {precision}",
        StopReason.interrupted: "interrupted",
        StopReason.failed: "a program failed",
    }[bench.stop]
    reached = "" if bench.reached is None else f", it reaches ±{units.share_text(bench.reached)}"
    return f"{reason}{reached}"


def _bench_notes(bench: Bench) -> list[str]:
    """Returns notes on the result; if imprecise, also the number of repetitions it would need."""
    notes = list(bench.notes)
    if bench.stop in (StopReason.rounds, StopReason.time) and bench.reached is not None:
        rounds = len(bench.rounds) * (bench.reached / bench.precision) ** 2
        notes.insert(
            0,
            "times on this machine vary too much for this precision: about "
            f"{units.count_text(rounds)} rounds would reach it; end other programs, make the "
            "programs run for longer, or choose a lower precision with `--precision`",
        )
    return notes
