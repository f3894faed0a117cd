"""How the room in a report is spent: on what tells most, first."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that a report may carry, in versions from the least to the most."""

    rank: int
    """What has a lower one is carried first."""
    sizes: tuple[int, ...]
    """Bytes of each version."""


def chosen(offers: Sequence[Offer], room: int) -> list[int | None]:
    """The version of each offer that is carried, None where there is no room for any.

    By rank, every offer gets its least version before any gets more; then, by rank again, each the
    most that still fits.

    >>> small, large = Offer(0, (10, 50)), Offer(1, (20, 30))
    >>> chosen([small, large], 60)
    [0, 1]
    >>> chosen([small, large], 80)
    [1, 1]
    >>> chosen([small, large], 15)
    [0, None]
    """
    versions: list[int | None] = [None] * len(offers)
    order = sorted(range(len(offers)), key=lambda place: offers[place].rank)
    for place in order:
        sizes = offers[place].sizes
        if sizes and sizes[0] <= room:
            versions[place] = 0
            room -= sizes[0]
    for place in order:
        least = versions[place]
        if least is None:
            continue
        sizes = offers[place].sizes
        fitting = [at for at, size in enumerate(sizes) if size - sizes[0] <= room]
        versions[place] = max(fitting)
        room -= sizes[max(fitting)] - sizes[0]
    return versions
