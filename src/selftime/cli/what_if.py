"""`selftime what-if`: predicts the step time after changes that the user names."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from typing import Annotated, Any, Final, TypeAlias

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.shared_options import OutputFile, TraceName, parse_share
from selftime.errors import UsageError


class OutputFormat(str, Enum):
    """Output formats of `selftime what-if`."""

    table = "table"
    json = "json"
    markdown = "markdown"


_ScaleOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--scale",
        metavar="PATTERN=SHARE",
        help="Leave this share of the time, such as 0.5 or 50%; repeat for several.",
    ),
]
_RemoveOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--remove",
        metavar="PATTERN",
        help="Remove the time, and the waits for a device in it; repeat for several.",
    ),
]
_HideOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--hide",
        metavar="CLASS",
        help="Run this beside other work, so that nothing waits for it: communication.",
    ),
]
_DeviceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Estimate a step on this GPU, such as A100, of a program on a CPU; not measured.",
    ),
]
_FormatOption: TypeAlias = Annotated[
    OutputFormat | None,
    typer.Option("--format", help="Output format; default: by FILE's suffix, else table."),
]
_EXAMPLE: Final = (
    "Example: selftime what-if selftime-runs --scale 'aten::conv*=0.5' --remove syncs "
    "--hide communication"
)


def add_command(app: typer.Typer) -> None:
    app.command(
        "what-if",
        short_help="Predict the step time after changes, before making them.",
        epilog=_EXAMPLE,
    )(what_if)


def what_if(  # noqa: PLR0913, PLR0917 - the command's options
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A trace, or a folder: each rank for itself.")
    ],
    scale_options: _ScaleOptions = None,
    remove: _RemoveOptions = None,
    hide: _HideOptions = None,
    device: _DeviceOption = None,
    trace_name: TraceName = None,
    output_format: _FormatOption = None,
    output: OutputFile = None,
) -> None:
    """Predict the step time after changes, by one simulation of the recorded program with all.

    PATTERN is a glob on names, such as `aten::conv*` (an operator, an annotation or a runtime call:
    its host time, and the device work launched in it; or a kernel or copy), a source line, such as
    `train.py:31`, or one of syncs, copies, launches, data, garbage_collection and communication.
    The saving is bounded as that of a finding: by the step without profiler, and by its floor.

    `--device` estimates a step of a program on a CPU on a GPU, by the FLOPs and bytes of its
    operators and their number, with an interval.
    """
    from selftime.advice.what_if import estimate_on_device
    from selftime.advice.what_if import what_if as predict
    from selftime.advice.what_if.prediction import predictions_as_json
    from selftime.reports.what_if import as_markdown, as_text

    output_format = output_format or output_writing.format_for_file(output, OutputFormat.table)
    changes: dict[str, Any] = {
        "scale": dict(_parse_scale(option) for option in scale_options or ()),
        "remove": remove or (),
        "hide": hide or (),
    }
    traces = trace_reading.read_traces(path, name_part=trace_name)
    output_writing.refuse_overwriting_inputs(output, (one.source for one in traces.values()))
    estimates = {name: estimate_on_device(one, device) for name, one in traces.items() if device}
    is_asked = any(changes.values()) or not device
    predictions = {name: predict(one, **changes) for name, one in traces.items() if is_asked}
    match output_format:
        case OutputFormat.json:
            page = predictions_as_json(predictions, estimates) + "\n"
        case OutputFormat.markdown:
            page = as_markdown(predictions, estimates)
        case OutputFormat.table:
            width = 80 if output is not None else output_writing.terminal_width()
            colour = output is None and output_writing.uses_colour()
            page = as_text(predictions, estimates, width=width, colour=colour)
    output_writing.write_output(page, to=output)


def _parse_scale(option: str) -> tuple[str, float]:
    """Returns pattern and share of an option such as `aten::conv*=0.5`."""
    pattern, _, share = option.rpartition("=")
    if not pattern:
        raise UsageError(
            f"`--scale {option[:60]}`: write a pattern and the share of its time that is left, "
            "such as `aten::conv*=0.5`"
        )
    return pattern, parse_share(f"--scale {pattern[:60]}", share)
