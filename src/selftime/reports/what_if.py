"""Writes the predicted step time after a user's changes as text and as Markdown."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from rich.table import Table
from rich.text import Text

from selftime.advice.what_if import DeviceEstimate, WhatIf
from selftime.advice.what_if.device_estimate import TimeRange
from selftime.advice.what_if.matched_names import MAX_MATCHED_NAMES
from selftime.advice.what_if.prediction import AppliedChange
from selftime.analysis.steps.bound_by import BOUND_BY_PHRASES, BoundBy
from selftime.reports.advice.markdown import code_span
from selftime.reports.plain import cut_text_end, plain
from selftime.reports.terminal import render_as_text
from selftime.units import (
    count_text,
    milliseconds_text,
    seconds_text,
    share_text,
    tenths_text,
    times_text,
    whole_percent_text,
)

MAX_NAMES_IN_TEXT: Final = 8
"""Largest number of matched names that the text lists of one change."""
_MAX_NAME_CHARACTERS: Final = 60
_NOTE_ON_NAMES: Final = (
    "Times are those of a recorded step. A name's time includes what it calls, so names overlap."
)
_BASIS_TEXTS: Final = {
    "unrecorded": "without the measured cost of recording",
    "recorded": "as recorded; what recording costs was not measured",
}


_NO_ESTIMATES: Final[Mapping[str, DeviceEstimate]] = MappingProxyType({})


def as_text(
    predictions: Mapping[str, WhatIf],
    on_device: Mapping[str, DeviceEstimate] = _NO_ESTIMATES,
    *,
    width: int = 80,
    colour: bool = False,
) -> str:
    """Returns predictions, and estimates on a device, by trace as text for a terminal."""
    blocks: list[Text | Table] = []
    for name, estimate in on_device.items():
        if len(on_device) > 1:
            blocks.append(Text(f"{plain(name)}\n", style="bold", no_wrap=True))
        blocks += [_two_columns(estimate_figures(estimate)), Text("")]
    for name, one in predictions.items():
        if len(predictions) > 1:
            blocks.append(Text(f"{plain(name)}\n", style="bold", no_wrap=True))
        blocks += [_two_columns(figures(one)), *_tables_of_changes(one), Text("")]
    if predictions:
        blocks.append(Text(_NOTE_ON_NAMES, style="dim"))
    return render_as_text(*blocks, width=width, colour=colour)


def _two_columns(rows: Iterator[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for label, text in rows:
        table.add_row(label, text)
    return table


def estimate_figures(one: DeviceEstimate) -> Iterator[tuple[str, str]]:
    """Yields label and text of each figure of an estimate on a device."""
    step, slowest = one.step, one.step_ms / one.step.high_ms
    fastest = one.step_ms / one.step.low_ms
    yield "Step now", f"{milliseconds_text(one.step_ms)} on the CPU"
    yield f"On {plain(_names_of_devices(one))}", f"{_range_text(step)}; not measured"
    yield "That is", f"{tenths_text(slowest)} to {tenths_text(fastest)} times as fast"
    yield "Device", _range_text(one.device)
    yield "Host", f"{_range_text(one.host)}, for Python and {count_text(one.launches)} operators"
    share = whole_percent_text(one.modelled_share)
    yield "Known", f"the work of {share} of the operators' time on the CPU, by shapes"


def _names_of_devices(one: DeviceEstimate) -> str:
    first, *others = one.devices
    return first if not others else f"{first} and {count_text(len(others))} more"


def _range_text(time: TimeRange) -> str:
    low, high = milliseconds_text(time.low_ms), milliseconds_text(time.high_ms)
    return f"{milliseconds_text(time.ms)} ({low} to {high})"


def figures(one: WhatIf) -> Iterator[tuple[str, str]]:
    """Yields label and text of each figure: the step now and then, the saving, what bounds it."""
    low, high = milliseconds_text(one.predicted_low_ms), milliseconds_text(one.predicted_high_ms)
    yield "Step now", f"{milliseconds_text(one.step_ms)} ({_BASIS_TEXTS[one.basis]})"
    yield "Predicted", f"{milliseconds_text(one.predicted_ms)} ({low} to {high})"
    yield "Saved", _saving_text(one)
    yield "Bound by", _phrase(one.bound_by)
    yield "Then by", _phrase(one.bound_by_after)


def _saving_text(one: WhatIf) -> str:
    saving = one.saving
    if not saving.estimate_ms:
        return "nothing: the step does not wait for it"
    text = f"{milliseconds_text(saving.estimate_ms)} a step"
    if saving.speedup is not None:
        text += f", {times_text(saving.speedup)} as fast"
    if saving.run_s is not None:
        text += f"; {seconds_text(saving.run_s * 1e9)} of the run"
    return text


def _phrase(bound_by: BoundBy | None) -> str:
    return "unknown" if bound_by is None else BOUND_BY_PHRASES[bound_by]


def _tables_of_changes(one: WhatIf) -> Iterator[Text | Table]:
    """Yields for each change a line with its times, and a table of the names that it matched."""
    for change in one.changes:
        yield Text(f"\n{change_text(change)}", style="bold")
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for matched in change.names[:MAX_NAMES_IN_TEXT]:
            name = cut_text_end(plain(matched.name), _MAX_NAME_CHARACTERS)
            count = f"{tenths_text(matched.count_per_step)} times"
            table.add_row(f"  {milliseconds_text(matched.ms)}", count, matched.kind, name)
        yield table
        left = change.name_count - min(len(change.names), MAX_NAMES_IN_TEXT)
        if left > 0:
            yield Text(f"  and {count_text(left)} more name{'' if left == 1 else 's'}")


def change_text(change: AppliedChange) -> str:
    """Returns what is changed, and its time on the host and on devices in a recorded step."""
    return f"{_verb(change)} {plain(change.pattern)}: {_times_text(change)}"


def _verb(change: AppliedChange) -> str:
    if change.change == "scale":
        return f"Scale to {share_text(change.kept_share)}"
    return "Remove" if change.change == "remove" else "Hide"


def _times_text(change: AppliedChange) -> str:
    host, device = milliseconds_text(change.host_ms), milliseconds_text(change.device_ms)
    return f"{host} on the host, {device} on devices"


def as_markdown(
    predictions: Mapping[str, WhatIf],
    on_device: Mapping[str, DeviceEstimate] = _NO_ESTIMATES,
    *,
    max_names: int = MAX_MATCHED_NAMES,
) -> str:
    """Returns predictions, and estimates on a device, by the name of their trace as Markdown.

    Of each change at most `max_names` of the matched names are listed.
    """
    blocks: list[str] = []
    for name, estimate in on_device.items():
        blocks.append(f"# On another device: {code_span(plain(name))}")
        rows = "\n".join(f"| {label} | {text} |" for label, text in estimate_figures(estimate))
        blocks.append(f"| | |\n|---|---|\n{rows}")
    for name, one in predictions.items():
        blocks.append(f"# What if: {code_span(plain(name))}")
        rows = "\n".join(f"| {label} | {text} |" for label, text in figures(one))
        blocks.append(f"| | |\n|---|---|\n{rows}")
        blocks += [_change_as_markdown(change, max_names) for change in one.changes]
    if predictions:
        blocks.append(_NOTE_ON_NAMES)
    return "\n\n".join(blocks) + "\n"


def _change_as_markdown(change: AppliedChange, max_names: int) -> str:
    title = f"## {_verb(change)} {code_span(plain(change.pattern))}: {_times_text(change)}"
    rows = [
        f"| {_cell(one.name)} | {one.kind} "
        f"| {tenths_text(one.count_per_step)} | {milliseconds_text(one.ms)} |"
        for one in change.names[:max_names]
    ]
    header = "| name | kind | a step | time |\n|---|---|---:|---:|"
    left = change.name_count - len(rows)
    more = [f"and {count_text(left)} more name{'' if left == 1 else 's'}"] if left > 0 else []
    return "\n\n".join([title, *(["\n".join([header, *rows])] if rows else []), *more])


def _cell(name: str) -> str:
    """Returns a name as the code span of a table's cell, in which a bar would end the cell."""
    span = code_span(cut_text_end(plain(name), _MAX_NAME_CHARACTERS))
    return span.replace("|", "\\|")
