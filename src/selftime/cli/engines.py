"""The engine that the words of a command choose, and what it tells of a job's ranks."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from typing import TYPE_CHECKING, Any

from selftime.cli import reading
from selftime.cli.boundary import say
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.scale.collect import JobView
    from selftime.views import View


class EngineName(str, Enum):
    """What reads the ranks of a job."""

    local = "local"
    ray = "ray"


def view_ranks(
    view: "View[Any]", options: dict[str, Any], path: str, *, choice: str | None, engine: Any
) -> "JobView":
    """A view of the traces at `path` by an engine; what is odd about them is told on stderr."""
    from selftime.scale.collect import view_of_job

    with reading.bar("Reading ranks", counts_bytes=False) as progress:
        found = view_of_job(path, view, options, engine=engine, progress=progress, choice=choice)
    reading.tell_job(found.refused, () if choice else found.notes)
    return found


def tell_ranks(view: "View[Any]", found: "JobView", path: str) -> None:
    """A line on stderr for each trace that is damaged, or lacks what the view needs."""
    for key, lacks in found.lacks.items():
        for lack in lacks:
            say(f"`{view.name}` of `{reading.name_in(key, path)}` lacks {lack}")
    reading.tell_doubts({reading.name_in(key, path): one for key, one in found.outlines.items()})


def engine_of(name: EngineName | None, address: str | None, workers: int | None) -> Any:
    """The engine that was asked for."""
    from selftime.scale import Local, Ray

    if name is EngineName.ray:
        return Ray(address, workers)
    if address is not None:
        raise UsageError("`--address` is that of a Ray cluster: add `--engine ray`")
    return Local(workers)
