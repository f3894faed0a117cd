"""`selftime advise`: prints what to change in a program, sorted by the time that it saves."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile
from selftime.errors import UnrelatedTraces

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.advice import Advice


class OutputFormat(str, Enum):
    """Output formats that `selftime advise --format` accepts."""

    text = "text"
    json = "json"
    markdown = "markdown"
    sarif = "sarif"


_TraceName = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="NAME",
        help="Advise on this trace, where PATH holds several independent traces.",
    ),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "advise",
        short_help="Say what to change, ranked by what it saves.",
        epilog="Example: selftime advise selftime-runs --format markdown",
    )(advise)


def advise(  # noqa: PLR0913, PLR0917 - the command's options
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
    trace_name: _TraceName = None,
    finding_id: Annotated[
        str | None,
        typer.Option(
            "--finding", metavar="ID", help="Show only this finding or this rule, with events."
        ),
    ] = None,
    is_unlimited: Annotated[
        bool, typer.Option("--all", help="Write all of the Markdown, without a limit.")
    ] = False,
    trace_unless_job: Annotated[
        str | None,
        typer.Option(
            "--unless-job",
            metavar="TRACE",
            hidden=True,
            help="Answer for this trace if those at PATH are not ranks that communicate.",
        ),
    ] = None,
) -> None:
    """Say what to change, on which line, with confidence and the time that it saves.

    Traces of ranks that communicate get one answer: findings about all ranks together, and findings
    about the rank that the others wait for, or else about the first rank.
    """
    from selftime.advice import advise as ask

    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    options = _AdviceOutputOptions(output_format, output is not None, finding_id, is_unlimited)
    of_job = _advice_on_job(path, output) if trace_name is None else None
    if of_job is None and trace_unless_job is not None:
        path = trace_unless_job
    if of_job is not None:
        page = options.advice_text(of_job, path)
    elif output_format in (OutputFormat.json, OutputFormat.sarif) or finding_id is not None:
        trace = trace_reading.read_only_trace(path, name_part=trace_name)
        output_writing.refuse_overwriting_inputs(output, [trace.source])
        page = options.advice_text(ask(trace), trace.source)
    else:
        traces = trace_reading.read_traces(path, name_part=trace_name)
        output_writing.refuse_overwriting_inputs(output, (one.source for one in traces.values()))
        pages = {name: options.advice_text(ask(one), one.source) for name, one in traces.items()}
        page = _concatenate_advice_texts(pages, output_format)
    output_writing.write_output(page, to=output)


@dataclass(frozen=True, slots=True)
class _AdviceOutputOptions:
    """The options of `selftime advise` that choose the format and the findings to print."""

    output_format: OutputFormat
    to_file: bool
    finding_id: str | None
    is_unlimited: bool

    def advice_text(self, advice: "Advice", path: str) -> str:
        """Returns the advice about the trace at `path`, or only the requested finding, as text."""
        from selftime.advice.finding_ids import select_findings
        from selftime.advice.rule_registry import rules_by_name
        from selftime.reports.advice import brief, sarif, text
        from selftime.reports.advice.queries import ShellQueries

        part = advice if self.finding_id is None else select_findings(advice, self.finding_id)
        root = str(Path.cwd())  # files are shown relative to the working folder
        match self.output_format:
            case OutputFormat.json:
                return part.to_json() + "\n"
            case OutputFormat.markdown:
                whole = self.is_unlimited or self.finding_id is not None
                queries = ShellQueries(path, advice.trace)
                return brief.as_brief(part, queries, root=root, whole=whole)
            case OutputFormat.sarif:
                return sarif.as_sarif(part, rules_by_name(), root=root)
            case OutputFormat.text:
                colour = output_writing.uses_colour() and not self.to_file
                width = 80 if self.to_file else output_writing.terminal_width()
                events = self.finding_id is not None
                trace = advice.trace
                slow_steps = {} if trace is None else trace_reading.slow_step_differences(trace)
                return text.as_text(
                    part,
                    width=width,
                    colour=colour,
                    root=root,
                    with_events=events,
                    slow_step_differences=slow_steps,
                )


def _advice_on_job(path: str, output: Path | None) -> "Advice | None":
    """Returns one advice for all traces at `path` if they are ranks of one job, else None."""
    from selftime.ingest.trace_paths import trace_files
    from selftime.scale import survey
    from selftime.scale.advice import advice_for_ranks, do_ranks_communicate

    found = trace_files(path)
    if not found.is_collection:
        return None
    output_writing.refuse_overwriting_inputs(output, found.files)
    try:
        with trace_reading.progress_bar("Reading ranks", counts_bytes=False) as progress:
            ranks = survey(path, progress=progress)
    except UnrelatedTraces:
        return None
    if len(ranks.ranks_by_key()) < 2 or not do_ranks_communicate(ranks):
        return None
    trace_reading.report_job_problems(ranks.refused, ranks.notes)
    return advice_for_ranks(ranks)


def _concatenate_advice_texts(text_by_trace: dict[str, str], output_format: OutputFormat) -> str:
    if len(text_by_trace) == 1:
        return next(iter(text_by_trace.values()))
    from selftime.reports.advice.markdown import code_span
    from selftime.reports.plain import plain

    heading = "# {}".format if output_format is OutputFormat.markdown else str
    name_text = code_span if output_format is OutputFormat.markdown else plain
    return "\n".join(f"{heading(name_text(n))}\n\n{page}" for n, page in text_by_trace.items())
