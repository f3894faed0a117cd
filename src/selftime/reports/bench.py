"""What a bench found, for a terminal, programs and a pull request."""

from textwrap import fill
from typing import Final

from rich.table import Table
from rich.text import Text

from selftime import units
from selftime.bench.result import Bench, Bounds, Metric, ProgramTimes, Run, Stop
from selftime.reports.advice.markdown import inert, quoted
from selftime.reports.plain import cut_middle, plain
from selftime.reports.terminal import sheet

_LONGEST: Final = 200
"""Columns of a program's words."""
_MANY: Final = 10
"""Times as fast from which one digit less is written."""


def as_text(found: Bench, *, width: int = 80, colour: bool = False) -> str:
    """The speed-up, what each program takes, what stopped the rounds, what limits the answer."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("", *_columns(found), style="dim")
    for name, side in (("before", found.before), ("after", found.after)):
        table.add_row(name, *_row(found, side, _runs(found, name)))
    parts: list[Text | Table] = [Text(headline(found), style="bold"), Text(), table, Text()]
    page = sheet(*parts, width=width, colour=colour)
    told = [*_sentences(found), *(f"- {note}" for note in _limits(found))]
    told += [f"{name:6}  {_words(side)}" for name, side in _sides(found)]
    lines = (fill(plain(one), width, subsequent_indent="  ") for one in told)
    return page + "\n".join(lines) + "\n"


def as_markdown(found: Bench) -> str:
    """A verdict, a table and what limits them, for a pull request."""
    columns = _columns(found)
    lines = [f"**{headline(found)}**", ""]
    lines += [f"| | {' | '.join(columns)} | program |", "|---" * (len(columns) + 2) + "|"]
    for name, side in _sides(found):
        row = " | ".join(_row(found, side, _runs(found, name)))
        lines.append(f"| {name} | {row} | {quoted(_words(side))} |")
    for one in _sentences(found):
        lines += ["", inert(one)]
    notes = _limits(found)
    lines += ["", *(f"- {inert(note)}" for note in notes)] if notes else []
    return "\n".join(lines) + "\n"


def as_json(found: Bench) -> str:
    """`selftime.bench/1` (docs/formats.md)."""
    return found.to_json()


def headline(found: Bench) -> str:
    """What is told of the speed-up, in a line."""
    said = {"faster": "Faster", "slower": "Slower", "not told": "No difference is told"}
    return f"{said[found.state]}: {_times(found.speedup)} as fast{_interval(found.speedup)}"


def _times(speedup: Bounds) -> str:
    return f"{_ratio(speedup.estimate)} times"


def _interval(bounds: Bounds) -> str:
    if bounds.low is None or bounds.high is None:
        return " (interval unknown)"
    return f" ({_ratio(bounds.low)} to {_ratio(bounds.high)}, 95 %)"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= _MANY else f"{value:.3f}"


def _sides(found: Bench) -> tuple[tuple[str, ProgramTimes], ...]:
    return ("before", found.before), ("after", found.after)


def _runs(found: Bench, name: str) -> list[Run]:
    return [one.before if name == "before" else one.after for one in found.rounds]


def _words(side: ProgramTimes) -> str:
    return cut_middle(plain(side.program), _LONGEST)


def _columns(found: Bench) -> list[str]:
    if found.metric is Metric.process:
        return ["whole process", "middle half of rounds"]
    return ["step", "middle half of rounds", "steps a run", "whole process"]


def _row(found: Bench, side: ProgramTimes, runs: list[Run]) -> list[str]:
    low, high = _ms(side.low_ms), _ms(side.high_ms)
    row = [_ms(side.median_ms), f"{low} to {high}"]
    if found.metric is Metric.process:
        return row
    steps = sorted(run.steps for run in runs)[len(runs) // 2]
    out = sorted(run.warm_up + run.unlike for run in runs)[len(runs) // 2]
    return [*row, f"{steps:,} ({out:,} left out)", _ms(side.process_ms)]


def _ms(value: float) -> str:
    return units.time_text(value * 1e6)


def _sentences(found: Bench) -> list[str]:
    """What is saved, of the whole process, and what stopped the rounds."""
    unit = "a step" if found.metric is Metric.step else "a process"
    saved = found.saved_ms
    ends = "interval unknown"
    if saved.low is not None and saved.high is not None:
        ends = f"{_ms(saved.low)} to {_ms(saved.high)}, 95 %"
    told = [f"Saved: {_ms(saved.estimate)} {unit} ({ends})."]
    if found.metric is Metric.step:
        share = found.before.process_ms / found.after.process_ms
        told.append(f"Whole processes, by their medians: {_ratio(share)} times as fast.")
    count = len(found.rounds)
    rounds = f"{count} round{'' if count == 1 else 's'} in {found.seconds:.0f} s"
    return [*told, f"Stopped after {rounds}: {_stopped(found)}."]


def _stopped(found: Bench) -> str:
    asked = f"±{units.share_text(found.precision)}"
    why = {
        Stop.precise: f"the interval is within {asked}",
        Stop.rounds: f"`--max-rounds` is reached before {asked}",
        Stop.time: f"`--max-seconds` is reached before {asked}",
        Stop.interrupted: "interrupted",
        Stop.failed: "a program failed",
    }[found.stop]
    reached = "" if found.reached is None else f", it reaches ±{units.share_text(found.reached)}"
    return f"{why}{reached}"


def _limits(found: Bench) -> list[str]:
    """The notes, and where it is not precise, how many rounds might be enough."""
    notes = list(found.notes)
    if found.stop in (Stop.rounds, Stop.time) and found.reached is not None:
        needed = len(found.rounds) * (found.reached / found.precision) ** 2
        notes.insert(
            0,
            "the machine is too noisy to tell it as precisely as asked: about "
            f"{units.count_text(needed)} rounds would; end what else runs, make the programs run "
            "for longer, or ask for less with `--precision`",
        )
    return notes
