"""Finds differences between two recordings, such as devices, that make times hard to compare."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.analysis.recorded_cores import (
    cores_used_by_others,
    processor_name,
    recorded_machine,
    usable_cores,
)
from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED, RecordingNeed
from selftime.analysis.steps.steady_steps import is_instant_in_windows
from selftime.compare.amounts_per_step import step_windows
from selftime.trace import Trace
from selftime.units import tenths_text

_NAME_BY_SLOWING_RECORDED_DATA: Final[dict[RecordingNeed, str]] = {
    "stacks": "Python stacks",
    "shapes": "input shapes",
    "memory": "memory events",
    "modules": "Python frames of modules",
    "workers": "what workers of a DataLoader do",
}
"""Recorded data, such as stacks, whose recording slows the program, with their names in
messages."""
_SOFTWARE_NAME_BY_VERSION_KEY: Final = {"torch": "PyTorch", "cuda": "CUDA", "python": "Python"}
_MIN_SHARE_OF_CALLS_WITH_EQUAL_SHAPES: Final = 0.9
"""Smallest share of operator calls, with shapes in both recordings, for their work to count as
equal."""
_MAX_QUOTED_VALUE_CHARACTERS: Final = 40
"""Largest number of characters of a value, such as a device name, in a sentence; the rest is
cut."""


_MIN_DIFFERENCE_OF_LOAD_CORES: Final = 0.5
"""Smallest difference of the cores that other programs used, from which the recordings' times are
hard to compare."""
_MIN_DIFFERENCE_OF_LOAD_SHARE: Final = 0.1
"""The same as a share of the cores: half a core of 64 slows nobody."""


@dataclass(frozen=True, slots=True)
class Comparability:
    """Properties of a recording, such as devices and versions, that affect its times."""

    devices: tuple[str, ...]
    versions: dict[str, str]
    """Recorded versions by key: `torch`, `cuda` and `python`; versions that were not recorded are
    missing."""
    threads: int | None
    """Number of PyTorch's intra-op threads; None if it was not recorded."""
    rank: int | None
    world_size: int | None
    recorded: tuple[str, ...]
    """Which data that slow the program, such as stacks and shapes, the recording contains."""
    processor: str | None = None
    """Name of the CPU; None if it was not recorded."""
    cores: float | None = None
    """Number of CPU cores that the process could use; None if it was not recorded."""

    @classmethod
    def from_trace(cls, trace: Trace) -> "Comparability":
        facts = recorded_machine(trace)
        settings = trace.facts.get("settings")
        threads = settings.get("threads") if isinstance(settings, dict) else facts.get("threads")
        job = trace.metadata.get("distributedInfo")
        told = job if isinstance(job, dict) else {}
        return cls(
            tuple(sorted(trace.devices["name"].cast(pl.String).drop_nulls().unique().to_list())),
            {
                key: str(facts[key])
                for key in _SOFTWARE_NAME_BY_VERSION_KEY
                if facts.get(key) is not None
            },
            _integer_or_none(threads),
            _integer_or_none(told.get("rank")),
            _integer_or_none(told.get("world_size")),
            tuple(
                need
                for need in _NAME_BY_SLOWING_RECORDED_DATA
                if REQUIREMENT_BY_NEED[need].present(trace)
            ),
            processor_name(trace),
            usable_cores(trace),
        )


def _integer_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def recording_differences(before: Trace, after: Trace) -> tuple[str, ...]:
    """Returns one sentence for each difference between two recordings, such as in versions."""
    alone = [
        f"the {which} has the ledger of its run alone, and no recording of steps"
        for which, trace in (("first", before), ("second", after))
        if trace.run.source == trace.source != ""
    ]
    if alone:
        return tuple(alone)
    sides = Comparability.from_trace(before), Comparability.from_trace(after)
    return (
        *property_differences(*sides),
        *_notes_on_load(before, after),
        *_notes_on_lack_of_steps(before, after),
        *_notes_on_input_shape_differences(before, after),
    )


def property_differences(before: Comparability, after: Comparability) -> Iterator[str]:
    """Yields one sentence for each property that differs between two recordings."""
    yield from _machine_differences(before, after)
    for key, called in _SOFTWARE_NAME_BY_VERSION_KEY.items():
        old, new = before.versions.get(key), after.versions.get(key)
        if None not in (old, new) and old != new:
            yield f"the versions of {called} differ: {_text_before_after([old], [new])}"
    if None not in (before.threads, after.threads) and before.threads != after.threads:
        yield f"PyTorch's threads differ: {_text_before_after([before.threads], [after.threads])}"
    if before.world_size != after.world_size:
        sizes = _text_before_after([before.world_size], [after.world_size])
        yield f"the numbers of ranks differ: {sizes}"
    if before.rank != after.rank:
        yield f"the ranks differ: {_text_before_after([before.rank], [after.rank])}"
    for need, called in _NAME_BY_SLOWING_RECORDED_DATA.items():
        if (need in before.recorded) != (need in after.recorded):
            which = "first" if need in before.recorded else "second"
            yield f"only the {which} recording has {called}: recording them slows the host"


def _machine_differences(before: Comparability, after: Comparability) -> Iterator[str]:
    if before.devices != after.devices:
        first, second = (one.devices or ("unknown",) for one in (before, after))
        yield f"the devices differ: {_text_before_after(first, second)}"
    if None not in (before.processor, after.processor) and before.processor != after.processor:
        yield f"the processors differ: {_text_before_after([before.processor], [after.processor])}"
    if before.cores is not None and after.cores is not None and before.cores != after.cores:
        counts = [tenths_text(cores) for cores in (before.cores, after.cores)]
        yield f"the numbers of cores differ: {_text_before_after(counts[:1], counts[1:])}"


def least_difference_of_load(cores: float | None) -> float:
    """Returns by how many used cores two loads differ at least to change times, on so many."""
    return max(_MIN_DIFFERENCE_OF_LOAD_CORES, _MIN_DIFFERENCE_OF_LOAD_SHARE * (cores or 0.0))


def _notes_on_load(before: Trace, after: Trace) -> Iterator[str]:
    """Yields a sentence if other programs used the cores more during one of the recordings."""
    old, new = cores_used_by_others(before), cores_used_by_others(after)
    least = least_difference_of_load(usable_cores(after))
    if old is not None and new is not None and abs(new - old) >= least:
        used = f"{tenths_text(old)} cores before and {tenths_text(new)} cores after"
        yield f"other programs used {used}"


def _notes_on_lack_of_steps(before: Trace, after: Trace) -> Iterator[str]:
    for trace, which in ((before, "first"), (after, "second")):
        if not REQUIREMENT_BY_NEED["steps"].present(trace):
            yield f"the {which} recording has no steps: all of it counts as one"
        elif step_windows(trace).count < 2:
            yield f"the {which} recording has only one steady step: variation is unknown"


def _notes_on_input_shape_differences(before: Trace, after: Trace) -> Iterator[str]:
    first, second = _operator_calls_by_shape(before), _operator_calls_by_shape(after)
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
        _total_operator_calls(unmatched_calls)
        <= (1 - _MIN_SHARE_OF_CALLS_WITH_EQUAL_SHAPES) * _total_operator_calls(own)
        for unmatched_calls, own in of_all
    ):
        return
    both = pl.concat(unmatched).group_by("name").agg(pl.col("calls").sum())
    name = both.sort("calls", "name", descending=[True, False])["name"][0]
    sides = zip(unmatched, (first, second), strict=True)
    most = [
        _most_frequent_shapes(unmatched_calls, name) or _most_frequent_shapes(own, name)
        for unmatched_calls, own in sides
    ]
    shapes = _text_before_after(most[:1], most[1:])
    yield f"the shapes of inputs differ, such as of `{name}`: {shapes}"


def _total_operator_calls(calls: pl.DataFrame) -> float:
    return float(calls["calls"].to_numpy().sum())


def _most_frequent_shapes(calls: pl.DataFrame, name: str) -> str | None:
    """Returns the most frequent input shapes in an operator's calls; None without calls."""
    own = calls.filter(pl.col("name") == name).sort("calls", "shapes", descending=[True, False])
    return own["shapes"].head(1).to_list()[0] if own.height else None


def _operator_calls_by_shape(trace: Trace) -> pl.DataFrame:
    """Returns the number of calls per step, by operator name and recorded input shapes."""
    steps = step_windows(trace)
    told = trace.op_args.select("id", shapes=pl.col("input_shapes").cast(pl.String)).drop_nulls()
    slices = trace.slices[told["id"]].select("start", name=pl.col("name").cast(pl.String))
    inside = is_instant_in_windows(
        slices["start"].to_numpy(), pl.DataFrame({"start": steps.start, "end": steps.end})
    )
    table = slices.with_columns(told["shapes"]).filter(pl.Series(inside, dtype=pl.Boolean))
    return table.group_by("name", "shapes").agg(calls=pl.len() / max(steps.count, 1))


def _text_before_after(before: Iterable[Any], after: Iterable[Any]) -> str:
    return f"{_text_of_quoted_values(before)} before, {_text_of_quoted_values(after)} after"


def _text_of_quoted_values(values: Iterable[Any]) -> str:
    text = ", ".join("unknown" if value is None else str(value) for value in values)
    return (
        f"`{text[:_MAX_QUOTED_VALUE_CHARACTERS]}…`"
        if len(text) > _MAX_QUOTED_VALUE_CHARACTERS
        else f"`{text}`"
    )
