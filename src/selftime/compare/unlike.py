"""In what two recordings differ besides times, which then may not be compared as they are."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

import polars as pl

from selftime.compare.amounts import windows
from selftime.trace import Trace
from selftime.views.accounts.evidence import NEEDS, Need
from selftime.views.accounts.steps.judging import is_within

__all__ = ["unlike"]

_SLOWING: Final[dict[Need, str]] = {
    "stacks": "Python stacks",
    "shapes": "input shapes",
    "memory": "memory events",
    "modules": "Python frames of modules",
    "workers": "what workers of a DataLoader do",
}
"""What slows the program that records it."""
_FACTS: Final = {"torch": "PyTorch", "cuda": "CUDA", "python": "Python"}
_ALIKE: Final = 0.9
"""Of the calls of operators that both have: less than this on the same shapes is other work."""
_MOST: Final = 40
"""Characters of what is told of either side."""


def unlike(before: Trace, after: Trace) -> tuple[str, ...]:
    """One sentence for each way in which the recordings differ."""
    kinds = (_devices, _facts, _ranks, _recorded, _steps, _shapes)
    return tuple(chain.from_iterable(tell(before, after) for tell in kinds))


def _devices(before: Trace, after: Trace) -> Iterator[str]:
    first, second = (_names(trace.devices["name"]) for trace in (before, after))
    if first != second:
        yield f"the devices differ: {_both(first or ['unknown'], second or ['unknown'])}"


def _facts(before: Trace, after: Trace) -> Iterator[str]:
    for key, called in _FACTS.items():
        first, second = before.facts.get(key), after.facts.get(key)
        if first is not None and second is not None and first != second:
            yield f"the versions of {called} differ: {_both([first], [second])}"
    told = [_threads(trace) for trace in (before, after)]
    if None not in told and told[0] != told[1]:
        yield f"PyTorch's threads differ: {_both(told[:1], told[1:])}"


def _threads(trace: Trace) -> int | None:
    settings = trace.facts.get("settings")
    threads = settings.get("threads") if isinstance(settings, dict) else None
    return threads if isinstance(threads, int) else None


def _ranks(before: Trace, after: Trace) -> Iterator[str]:
    told = [trace.metadata.get("distributedInfo") for trace in (before, after)]
    first, second = (one if isinstance(one, dict) else {} for one in told)
    for key, called in (("world_size", "numbers of ranks"), ("rank", "ranks")):
        if first.get(key) != second.get(key):
            yield f"the {called} differ: {_both([first.get(key)], [second.get(key)])}"


def _recorded(before: Trace, after: Trace) -> Iterator[str]:
    for need, called in _SLOWING.items():
        there = [NEEDS[need].present(trace) for trace in (before, after)]
        if there[0] != there[1]:
            which = "first" if there[0] else "second"
            yield f"{called} are in the {which} recording alone: recording them slows the host"


def _steps(before: Trace, after: Trace) -> Iterator[str]:
    for trace, which in ((before, "first"), (after, "second")):
        if not NEEDS["steps"].present(trace):
            yield f"the {which} recording has no steps: all of it counts as one"
        elif windows(trace).count < 2:
            yield f"the {which} recording has one step that counts: nothing tells what varies"


def _shapes(before: Trace, after: Trace) -> Iterator[str]:
    first, second = _calls(before), _calls(after)
    first = first.join(second.select("name").unique(), on="name", how="semi")
    second = second.join(first.select("name").unique(), on="name", how="semi")
    if not first.height:
        return
    strange = [
        own.join(other, on=("name", "shapes"), how="anti")
        for own, other in ((first, second), (second, first))
    ]
    of_all = zip(strange, (first, second), strict=True)
    if all(_total(odd) <= (1 - _ALIKE) * _total(own) for odd, own in of_all):
        return
    both = pl.concat(strange).group_by("name").agg(pl.col("calls").sum())
    name = both.sort("calls", "name", descending=[True, False])["name"][0]
    sides = zip(strange, (first, second), strict=True)
    most = [_most(odd, name) or _most(own, name) for odd, own in sides]
    yield f"the shapes of inputs differ, such as of `{name}`: {_both(most[:1], most[1:])}"


def _total(calls: pl.DataFrame) -> float:
    return float(calls["calls"].to_numpy().sum())


def _most(calls: pl.DataFrame, name: str) -> str | None:
    """The shapes on which an operator is called most."""
    own = calls.filter(pl.col("name") == name).sort("calls", "shapes", descending=[True, False])
    return own["shapes"].head(1).to_list()[0] if own.height else None


def _calls(trace: Trace) -> pl.DataFrame:
    """Columns name, shapes and calls, a step, of operators whose input shapes are recorded."""
    steps = windows(trace)
    told = trace.op_args.select("id", shapes=pl.col("input_shapes").cast(pl.String)).drop_nulls()
    slices = trace.slices[told["id"]].select("start", name=pl.col("name").cast(pl.String))
    inside = is_within(
        slices["start"].to_numpy(), pl.DataFrame({"start": steps.start, "end": steps.end})
    )
    table = slices.with_columns(told["shapes"]).filter(pl.Series(inside, dtype=pl.Boolean))
    return table.group_by("name", "shapes").agg(calls=pl.len() / max(steps.count, 1))


def _names(column: pl.Series) -> list[str]:
    return sorted(column.cast(pl.String).drop_nulls().unique().to_list())


def _both(before: Iterable[Any], after: Iterable[Any]) -> str:
    return f"{_told(before)} before, {_told(after)} after"


def _told(values: Iterable[Any]) -> str:
    text = ", ".join("unknown" if value is None else str(value) for value in values)
    return f"`{text[:_MOST]}…`" if len(text) > _MOST else f"`{text}`"
