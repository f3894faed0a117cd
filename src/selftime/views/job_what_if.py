"""What a step of a job would take without several kinds of imbalance and transfers at once."""

from typing import Final

import polars as pl

from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.job_what_if import JobWhatIf
from selftime.analysis.ranks.job_what_if import job_what_if as what_if_of_job
from selftime.errors import UsageError
from selftime.schema import Column
from selftime.views.view_declaration import view

SEPARATOR: Final = ", "
"""What stands between the changes of a row."""
_MAX_QUOTED_CHARACTERS: Final = 60


@view(
    Column(
        "without",
        pl.String,
        "text",
        "What the job is computed without, all at once, separated by commas; empty for the job as "
        "it is.",
    ),
    Column("changes", pl.Int64, "count", "How many changes these are."),
    Column(
        "step_time",
        pl.Float64,
        "ns",
        "What a mean step would then take, with waits of unknown cause as recorded.",
    ),
    Column(
        "step_time_without_unknown_waits",
        pl.Float64,
        "ns",
        "What it would then take if waits of unknown cause were for what changes.",
    ),
    Column(
        "least_saving", pl.Float64, "ns", "What that saves a step at least; less than 0 is a loss."
    ),
    Column("most_saving", pl.Float64, "ns", "What that saves a step at most."),
)
def job_what_if(job: Ranks, *, without: str = "", every_choice: bool = False) -> pl.DataFrame:
    """What a step of a job would take with several changes at once, computed by one replay of all.

    The first row is the job as it is; then each change alone: without slow ranks, unequal stages,
    unequal micro-batches (as in `imbalance`), and with transfers of a group that take no time, in
    which the ranks still wait for each other. `without` lists changes, separated by commas, and
    adds a row for all of them together. `every_choice` has a row for each choice of changes.
    Savings are not to be added up: what one change saves depends on the others. Nothing is computed
    unless two ranks have two steps in a row.
    """
    schema = {column.name: column.dtype for column in job_what_if.columns}
    found = what_if_of_job(job)
    if found is None:
        return pl.DataFrame(schema=schema)
    choices: list[tuple[str, ...]] = [(), *((change,) for change in found.changes)]
    if every_choice:
        choices = [(), *found.combinations()]
    asked = _parsed_changes(without, found)
    if asked not in choices:
        choices.append(asked)
    return pl.DataFrame([_row(found, one) for one in choices], schema=schema, orient="row")


def _row(found: JobWhatIf, without: tuple[str, ...]) -> tuple[object, ...]:
    times = found.without(without)
    saved = found.recorded.longer_than(times)
    step = times.with_unknown_waits, times.without_unknown_waits
    return SEPARATOR.join(without), len(without), *step, *saved


def _parsed_changes(text: str, found: JobWhatIf) -> tuple[str, ...]:
    """Returns the changes that a text lists, in the order of all changes.

    Raises:
        UsageError: The job cannot be computed without one of them.
    """
    asked = {word for part in text.split(",") if (word := part.strip())}
    unknown = asked - set(found.changes)
    if unknown:
        raise UsageError(
            f"this job cannot be computed without `{min(unknown)[:_MAX_QUOTED_CHARACTERS]}`; "
            f"`without` takes {SEPARATOR.join(found.changes)}"
        )
    return tuple(change for change in found.changes if change in asked)
