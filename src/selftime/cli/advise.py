"""`selftime advise`: what to change, ranked by what it saves."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftime.cli import reading, writing
from selftime.cli.options import FORMAT, OutputFile, TraceName

if TYPE_CHECKING:  # polars stays out until the command runs
    from selftime.advice import Advice


class Format(str, Enum):
    """How the answer is written."""

    text = "text"
    json = "json"
    markdown = "markdown"
    sarif = "sarif"


def join(app: typer.Typer) -> None:
    app.command(
        "advise",
        short_help="Say what to change, ranked by what it saves.",
        epilog="Example: selftime advise selftime-runs --format markdown",
    )(advise)


def advise(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder of them.")],
    form: Annotated[Format | None, FORMAT] = None,
    output: OutputFile = None,
    trace: TraceName = None,
    finding: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only this finding, or what this rule says; with events."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Leave nothing out of the Markdown, however long.")
    ] = False,
) -> None:
    """Say what to change, on which line, how sure it is and what it saves.

    Traces of ranks that exchange something get one answer: what they tell together, and what is to
    be said of the rank that the others wait for, else of the first.
    """
    from selftime.advice import advise as ask

    form = form or writing.format_of(output, Format.text)
    asked = _Asked(form, output is not None, finding, every)
    of_job = _of_job(path) if trace is None else None
    if of_job is not None:
        page = asked.page(of_job, path)
    elif form in (Format.json, Format.sarif) or finding is not None:
        one = reading.read_one(path, choice=trace)
        page = asked.page(ask(one), one.source)
    else:
        traces = reading.read_traces(path, choice=trace)
        pages = {name: asked.page(ask(one), one.source) for name, one in traces.items()}
        page = _joined(pages, form)
    writing.write(page, to=output)


@dataclass(frozen=True, slots=True)
class _Asked:
    """How the answer is wanted."""

    form: Format
    to_file: bool
    finding: str | None
    every: bool

    def page(self, advice: "Advice", path: str) -> str:
        """The answer that was asked of `path`, or the part of it that is wanted."""
        from selftime.advice.identity import chosen
        from selftime.advice.registry import rules
        from selftime.reports.advice import brief, sarif, text
        from selftime.reports.advice.queries import Queries

        part = advice if self.finding is None else chosen(advice, self.finding)
        root = str(Path.cwd())  # files are named as seen from here
        match self.form:
            case Format.json:
                return part.to_json() + "\n"
            case Format.markdown:
                whole = self.every or self.finding is not None
                queries = Queries(path, advice.trace)
                return brief.as_brief(part, queries, root=root, whole=whole)
            case Format.sarif:
                return sarif.as_sarif(part, rules(), root=root)
            case Format.text:
                colour = writing.is_colourful() and not self.to_file
                width = 80 if self.to_file else writing.terminal_width()
                events = self.finding is not None
                return text.as_text(part, width=width, colour=colour, root=root, events=events)


def _of_job(path: str) -> "Advice | None":
    """The answer for all traces at `path`, if they are of one job's ranks."""
    from selftime.ingest.paths import trace_files
    from selftime.scale import survey
    from selftime.scale.advice import advise_ranks, is_one_job

    if not trace_files(path).is_collection:
        return None
    with reading.bar("Reading ranks", counts_bytes=False) as progress:
        ranks = survey(path, progress=progress)
    if len(ranks.by_key()) < 2 or not is_one_job(ranks):
        return None
    reading.tell_job(ranks.refused, ranks.notes)
    return advise_ranks(ranks)


def _joined(pages: dict[str, str], form: Format) -> str:
    if len(pages) == 1:
        return next(iter(pages.values()))
    from selftime.reports.advice.markdown import quoted
    from selftime.reports.plain import plain

    heading = "# {}".format if form is Format.markdown else str
    name_text = quoted if form is Format.markdown else plain
    return "\n".join(f"{heading(name_text(n))}\n\n{page}" for n, page in pages.items())
