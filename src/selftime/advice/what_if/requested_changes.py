"""Checks the changes that a user asks for: what is scaled, removed or hidden, and by how much."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, TypeAlias

from selftime.errors import UsageError

ChangeKind: TypeAlias = Literal["scale", "remove", "hide"]

CLASSES_TO_REMOVE: Final = {
    "syncs": "waits of the host for a device",
    "copies": "copies between host and device, with the host's calls of them",
    "launches": "host time of the operators and calls that launch device work",
    "data": "time of the main thread in the data loader",
    "garbage_collection": "time of Python's garbage collector",
    "communication": "collectives and other transfers between ranks",
}
"""Maps each name of a class of time, which a pattern can be, to what the class holds."""
CLASSES_TO_HIDE: Final = ("communication",)
"""Classes of time that a change can hide behind other work."""
CLASSES_WITHOUT_SCALE: Final = frozenset({"syncs"})
"""Classes that can only be removed: how long a wait takes follows from what it waits for."""


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """A change that a user asks for."""

    kind: ChangeKind
    pattern: str
    """A glob on names, a source line such as `train.py:31`, or the name of a class of time."""
    kept_share: float
    """Share of the time that is left, 0 to 1; 1 for work that is hidden."""

    @property
    def class_name(self) -> str | None:
        """Returns the class of time that the pattern names; None for other patterns."""
        return self.pattern if self.pattern in CLASSES_TO_REMOVE else None


def requested_changes(
    scale: Mapping[str, float], remove: Iterable[str] | str, hide: Iterable[str] | str
) -> tuple[RequestedChange, ...]:
    """Returns the changes in the order in which they are asked for.

    Raises:
        UsageError: There is no change, a factor is no share, or a class cannot be changed so.
    """
    changes = (
        *(RequestedChange("scale", pattern, _share(pattern, k)) for pattern, k in scale.items()),
        *(RequestedChange("remove", pattern, 0.0) for pattern in _as_patterns(remove)),
        *(RequestedChange("hide", pattern, 1.0) for pattern in _as_patterns(hide)),
    )
    if not changes:
        raise UsageError(
            "there is no change to predict: give `scale`, `remove` or `hide`, such as "
            "`--scale 'aten::conv*=0.5'`"
        )
    for change in changes:
        _check_class_of_change(change)
    return changes


def _as_patterns(patterns: Iterable[str] | str) -> tuple[str, ...]:
    """Returns the patterns in order, each once; a single text is one pattern."""
    return (patterns,) if isinstance(patterns, str) else tuple(dict.fromkeys(patterns))


def _share(pattern: str, factor: float) -> float:
    if not (isfinite(factor) and 0 <= factor <= 1):
        raise UsageError(
            f"the factor of `{pattern[:60]}` is {factor:g}; write the share of its time that is "
            "left, from 0 to 1"
        )
    return float(factor)


def _check_class_of_change(change: RequestedChange) -> None:
    """Raises a UsageError if a class of time cannot be changed in the way asked for."""
    if change.kind == "hide" and change.pattern not in CLASSES_TO_HIDE:
        raise UsageError(
            f"`{change.pattern[:60]}` cannot be hidden; what can be hidden is "
            f"{', '.join(f'`{name}`' for name in CLASSES_TO_HIDE)}"
        )
    if change.kind == "scale" and change.pattern in CLASSES_WITHOUT_SCALE:
        raise UsageError(
            f"`{change.pattern}` cannot be scaled, as a wait lasts until the work is done that it "
            f"waits for; remove them with `--remove {change.pattern}`"
        )
