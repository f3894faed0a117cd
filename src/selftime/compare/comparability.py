"""Find differences between two recordings that make their times hard to compare."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.analysis.requirements import NEEDS, Need
from selftime.analysis.steps.steady_steps import is_within
from selftime.compare.amounts import windows
from selftime.trace import Trace

_SLOWING: Final[dict[Need, str]] = {
    "stacks": "Python stacks",
    "shapes": "input shapes",
    "memory": "memory events",
    "modules": "Python frames of modules",
    "workers": "what workers of a DataLoader do",
}
"""Recorded data that slows the program down."""
_VERSIONS: Final = {"torch": "PyTorch", "cuda": "CUDA", "python": "Python"}
_ALIKE: Final = 0.9
"""The least share of calls of common operators on equal shapes; below it the work differs."""
_MOST: Final = 40
"""The most characters of a value in a sentence."""


@dataclass(frozen=True, slots=True)
class Comparability:
    """The properties that must be equal for times to be comparable."""

    devices: tuple[str, ...]
    versions: dict[str, str]
    """Versions of the software in `_VERSIONS`, as far as recorded."""
    threads: int | None
    """The number of PyTorch's threads."""
    rank: int | None
    world_size: int | None
    recorded: tuple[str, ...]
    """The data in `_SLOWING` that was recorded."""

    @classmethod
    def of(cls, trace: Trace) -> "Comparability":
        settings = trace.facts.get("settings")
        threads = settings.get("threads") if isinstance(settings, dict) else None
        job = trace.metadata.get("distributedInfo")
        told = job if isinstance(job, dict) else {}
        return cls(
            tuple(sorted(trace.devices["name"].cast(pl.String).drop_nulls().unique().to_list())),
            {key: str(trace.facts[key]) for key in _VERSIONS if trace.facts.get(key) is not None},
            _number(threads),
            _number(told.get("rank")),
            _number(told.get("world_size")),
            tuple(need for need in _SLOWING if NEEDS[need].present(trace)),
        )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def recording_differences(before: Trace, after: Trace) -> tuple[str, ...]:
    """Returns one sentence for each way in which the recordings differ."""
    sides = Comparability.of(before), Comparability.of(after)
    return (*property_differences(*sides), *_steps(before, after), *_shapes(before, after))


def property_differences(before: Comparability, after: Comparability) -> Iterator[str]:
    """Yields one sentence for each property that differs."""
    if before.devices != after.devices:
        first, second = (one.devices or ("unknown",) for one in (before, after))
        yield f"the devices differ: {_both(first, second)}"
    for key, called in _VERSIONS.items():
        old, new = before.versions.get(key), after.versions.get(key)
        if None not in (old, new) and old != new:
            yield f"the versions of {called} differ: {_both([old], [new])}"
    if None not in (before.threads, after.threads) and before.threads != after.threads:
        yield f"PyTorch's threads differ: {_both([before.threads], [after.threads])}"
    if before.world_size != after.world_size:
        yield f"the numbers of ranks differ: {_both([before.world_size], [after.world_size])}"
    if before.rank != after.rank:
        yield f"the ranks differ: {_both([before.rank], [after.rank])}"
    for need, called in _SLOWING.items():
        if (need in before.recorded) != (need in after.recorded):
            which = "first" if need in before.recorded else "second"
            yield f"{called} are only in the {which} recording: recording them slows the host"


def _steps(before: Trace, after: Trace) -> Iterator[str]:
    for trace, which in ((before, "first"), (after, "second")):
        if not NEEDS["steps"].present(trace):
            yield f"the {which} recording has no steps: all of it counts as one"
        elif windows(trace).count < 2:
            yield f"the {which} recording has only one steady step: variation is unknown"


def _shapes(before: Trace, after: Trace) -> Iterator[str]:
    first, second = _calls(before), _calls(after)
    first = first.join(second.select("name").unique(), on="name", how="semi")
    second = second.join(first.select("name").unique(), on="name", how="semi")
    if not first.height:
        return
    unmatched = [
        own.join(other, on=("name", "shapes"), how="anti")
        for own, other in ((first, second), (second, first))
    ]
    of_all = zip(unmatched, (first, second), strict=True)
    if all(
        _total(unmatched_calls) <= (1 - _ALIKE) * _total(own) for unmatched_calls, own in of_all
    ):
        return
    both = pl.concat(unmatched).group_by("name").agg(pl.col("calls").sum())
    name = both.sort("calls", "name", descending=[True, False])["name"][0]
    sides = zip(unmatched, (first, second), strict=True)
    most = [
        _most_frequent_shapes(unmatched_calls, name) or _most_frequent_shapes(own, name)
        for unmatched_calls, own in sides
    ]
    yield f"the shapes of inputs differ, such as of `{name}`: {_both(most[:1], most[1:])}"


def _total(calls: pl.DataFrame) -> float:
    return float(calls["calls"].to_numpy().sum())


def _most_frequent_shapes(calls: pl.DataFrame, name: str) -> str | None:
    """Returns the shapes that an operator is called on most often; None if it is not called."""
    own = calls.filter(pl.col("name") == name).sort("calls", "shapes", descending=[True, False])
    return own["shapes"].head(1).to_list()[0] if own.height else None


def _calls(trace: Trace) -> pl.DataFrame:
    """Returns columns name, shapes and calls per step, of operators with recorded input shapes."""
    steps = windows(trace)
    told = trace.op_args.select("id", shapes=pl.col("input_shapes").cast(pl.String)).drop_nulls()
    slices = trace.slices[told["id"]].select("start", name=pl.col("name").cast(pl.String))
    inside = is_within(
        slices["start"].to_numpy(), pl.DataFrame({"start": steps.start, "end": steps.end})
    )
    table = slices.with_columns(told["shapes"]).filter(pl.Series(inside, dtype=pl.Boolean))
    return table.group_by("name", "shapes").agg(calls=pl.len() / max(steps.count, 1))


def _both(before: Iterable[Any], after: Iterable[Any]) -> str:
    return f"{_told(before)} before, {_told(after)} after"


def _told(values: Iterable[Any]) -> str:
    text = ", ".join("unknown" if value is None else str(value) for value in values)
    return f"`{text[:_MOST]}…`" if len(text) > _MOST else f"`{text}`"
