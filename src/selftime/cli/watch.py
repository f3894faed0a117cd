"""`selftime watch`: shows the ranks of a job while it runs, and prints its answer at the end."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import TYPE_CHECKING, Annotated, Final

import typer

from selftime.cli import output_writing
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import FORMAT_OPTION
from selftime.errors import UsageError
from selftime.ledger_format import LEDGER_SUFFIX

if TYPE_CHECKING:  # numpy stays out until a command runs
    from selftime.analysis.progress.job_progress import JobProgress
    from selftime.ingest.ledger_progress.followed_run import FollowedRun
    from selftime.rank_progress import RankProgress

_LONGEST_PAUSE_S: Final = 1.0
"""Longest time between two looks at the ledgers, which are written once a second."""
_INTERVAL_S: Final = 1.0
_INTERVAL_OF_LINES_S: Final = 10.0
"""Default time between two lines where no terminal shows the ranks in place."""
_MIN_UNSEEN_NS: Final = 10_000_000_000
"""Time without a word from a process of this machine after which it is looked for."""
_LINES_BESIDE_RANKS: Final = 12
"""Number of lines of a terminal that are not for ranks."""
_LOOKS_AT_END: Final = 2
"""How often all ranks are found to have ended before the job is taken to be over: a launcher may
start them again."""
_EXIT_STATUS_INTERRUPTED: Final = 130
_Show = Callable[["JobProgress", dict[str, str]], None]


class OutputFormat(str, Enum):
    """Output formats of `selftime watch`."""

    text = "text"
    json = "json"


def add_command(app: typer.Typer) -> None:
    app.command(
        "watch",
        short_help="Show the ranks of a job while it runs, and its answer at the end.",
        epilog="Example: selftime watch selftime-runs",
    )(watch)


def watch(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder of `selftime run`, or a ledger of the run to show."
        ),
    ] = Path("selftime-runs"),
    output_format: Annotated[OutputFormat, FORMAT_OPTION] = OutputFormat.text,
    once: Annotated[bool, typer.Option("--once", help="Show the present state, and end.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            min=0.1, metavar="S", help="Seconds between refreshes; default: 1, of lines 10."
        ),
    ] = None,
) -> None:
    """Show the ranks of a job while it runs: steps, skew, slow ranks. Its answer comes at the end.

    Reads the ledgers that `selftime run` writes, one for each rank, of the newest run in DIR. A run
    that has ended already is shown with `--once`; without it, the next one is waited for.
    """
    from selftime.ingest.ledger_progress.followed_run import FollowedRun

    _check_path(path)
    followed = FollowedRun(path)
    try:
        if once:
            _show_once(followed, path, output_format)
        else:
            _watch_to_end(followed, path, output_format, interval)
    except KeyboardInterrupt:
        raise typer.Exit(_EXIT_STATUS_INTERRUPTED) from None


def _check_path(path: Path) -> None:
    if path.is_dir():
        return
    if path.exists() and not (path.is_file() and path.name.endswith(LEDGER_SUFFIX)):
        raise UsageError(
            f"`{path}` is no folder and no ledger (`{LEDGER_SUFFIX}`); name the folder of "
            "`selftime run`"
        )
    if not path.exists() and (path.name.endswith(LEDGER_SUFFIX) or not path.parent.is_dir()):
        raise UsageError(f"`{path}` does not exist; name the folder of `selftime run`")


def _show_once(followed: "FollowedRun", path: Path, output_format: OutputFormat) -> None:
    from selftime.reports.watch import as_json, as_text

    job = _job_now(followed.read())
    if output_format is OutputFormat.json:
        output_writing.write_output(as_json(job, now_ns=time_ns(), unread=followed.unread))
        return
    if not job.ranks and not followed.unread:
        raise UsageError(f"`{path}` holds no ledger; `selftime run` writes one for each rank")
    page = as_text(
        job,
        width=output_writing.terminal_width(),
        colour=output_writing.uses_colour(),
        root=os.getcwd(),  # noqa: PTH109 - as text
        unread=followed.unread,
    )
    output_writing.write_output(page)


def _watch_to_end(
    followed: "FollowedRun", path: Path, output_format: OutputFormat, interval: float | None
) -> None:
    """Shows the job until it is over, then its answer."""
    first = followed.read()
    ended = {one.source for one in first if _job_now(first).is_over and path.is_dir()}
    if ended or not first:
        what = "the newest run has ended; " if ended else ""
        print_notice(f"selftime: {what}waiting for the first step of a job in `{path}`")
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    is_json = output_format is OutputFormat.json
    default = _INTERVAL_S if is_terminal or is_json else _INTERVAL_OF_LINES_S
    seconds = default if interval is None else interval
    display = _documents if is_json else _live_table if is_terminal else _lines
    with display() as show:
        job = _follow(followed, ended, seconds, show)
        if is_json:
            show(job, followed.unread)
    if not is_json:
        _print_end(job, followed)


def _follow(
    followed: "FollowedRun", ended: set[str], interval: float, show: _Show
) -> "JobProgress":
    """Shows a job that is not among the ended ones until it is over.

    Returns its last state, which is not shown.
    """
    shown_at, looks_at_end = float("-inf"), 0
    while True:
        found = [one for one in followed.read() if one.source not in ended]
        job = _job_now(found)
        looks_at_end = looks_at_end + 1 if job.is_over else 0
        if looks_at_end >= _LOOKS_AT_END:
            return job
        if job.ranks and monotonic() - shown_at >= interval:
            shown_at = monotonic()
            show(job, followed.unread)
        sleep(min(interval, _LONGEST_PAUSE_S))


def _job_now(found: "Sequence[RankProgress]") -> "JobProgress":
    from selftime.analysis.progress.job_progress import job_progress

    now = time_ns()
    return job_progress(found, now, {one.process for one in found if _is_gone(one, now)})


def _is_gone(one: "RankProgress", now_ns: int) -> bool:
    """Returns whether a process of this machine is not there any more, and told no end."""
    from selftime.capture.live_processes import still_runs

    if one.status is not None or one.process is None or now_ns - one.written_ns < _MIN_UNSEEN_NS:
        return False
    is_of_this_machine = Path(one.source).name.startswith(f"{socket.gethostname()}_")
    return is_of_this_machine and not still_runs(one.process, one.written_ns / 1e9)


@contextmanager
def _documents() -> "Iterator[_Show]":
    from selftime.reports.watch import as_json

    yield lambda job, unread: output_writing.write_output(
        as_json(job, now_ns=time_ns(), unread=unread)
    )


@contextmanager
def _lines() -> "Iterator[_Show]":
    from selftime.reports.watch import as_line

    root = os.getcwd()  # noqa: PTH109 - as text
    yield lambda job, _: output_writing.write_output(as_line(job, now_ns=time_ns(), root=root))


@contextmanager
def _live_table() -> "Iterator[_Show]":
    """Shows the ranks in place; what was shown last is taken away at the end."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from selftime.reports.watch import as_text

    console, root = Console(highlight=False), os.getcwd()  # noqa: PTH109 - as text
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(job: "JobProgress", unread: dict[str, str]) -> None:
            page = as_text(
                job,
                width=output_writing.terminal_width(),
                colour=output_writing.uses_colour(),
                root=root,
                rows=console.height - _LINES_BESIDE_RANKS,
                unread=unread,
            )
            live.update(Text.from_ansi(page, no_wrap=True), refresh=True)

        yield show


def _print_end(job: "JobProgress", followed: "FollowedRun") -> None:
    """Prints how the ranks ended, and the answer of `selftime advise` on their traces."""
    from selftime.cli.advice_process import folder_of_links, print_advice
    from selftime.ingest.ledger_progress.traces_beside import traces_beside
    from selftime.reports.watch import as_text

    page = as_text(
        job,
        width=output_writing.terminal_width(),
        colour=output_writing.uses_colour(),
        root=os.getcwd(),  # noqa: PTH109 - as text
        unread=followed.unread,
    )
    output_writing.write_output(page)
    ledgers = [Path(one.progress.source) for one in job.ranks]
    traces = traces_beside(ledgers)
    if not traces:
        print_notice("selftime: no rank was recorded; for its ledger: selftime ledger DIR")
        return
    with folder_of_links(traces) as folder:
        print_advice(folder, folder=Path.cwd(), environment=os.environ, to_stderr=False)
