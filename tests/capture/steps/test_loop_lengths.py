"""How many iterations a loop makes, as far as its header tells."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

import pytest

from selftime.capture.code_loops import loops_at
from selftime.capture.steps.loop_lengths import known_iterations

ROWS = [[1, 2], [3]]


@dataclass
class Settings:
    epochs: int = 5

    @property
    def computed(self) -> int:
        raise AssertionError("code of the program ran")


settings = Settings()


def known_here() -> int | None:
    """What is known of the innermost loop of the caller."""
    frame: FrameType = sys._getframe(1)
    return known_iterations(loops_at(frame.f_code, frame.f_lasti)[-1], frame)


def constant() -> int | None:
    found = None
    for _ in range(5):
        found = known_here()
    return found


def names() -> int | None:
    found = None
    start, stop = 2, 12
    for _ in range(start, stop, 3):
        found = known_here()
    return found


def attribute() -> int | None:
    found = None
    for _ in range(settings.epochs):
        found = known_here()
    return found


def computed_attribute() -> int | None:
    found = None
    try:
        for _ in range(settings.computed):
            pass
    except AssertionError:
        for _ in range(settings.epochs * 2 - 1):
            found = known_here()
    return found


def property_that_is_not_asked() -> int | None:
    found = None

    class Six(Settings):
        @property
        def computed(self) -> int:
            return 6

    settings = Six()
    for _ in range(settings.computed):
        found = known_here()
    return found


def global_list() -> int | None:
    found = None
    for _ in ROWS:
        found = known_here()
    return found


def numbered() -> int | None:
    found = None
    for _, _ in enumerate(ROWS, 1):
        found = known_here()
    return found


def pairs() -> int | None:
    found = None
    unknown = iter(range(9))
    for _, _ in zip(unknown, ROWS, strict=False):
        found = known_here()
    return found


def axes() -> int | None:
    found = None
    for _ in (
        0,
        1,
        2,
    ):
        found = known_here()
    return found


def lengths() -> int | None:
    found = None
    for _ in range(len(ROWS) + 1):
        found = known_here()
    return found


def generator() -> int | None:
    found = None

    def numbers() -> Iterator[int]:
        yield from range(5)

    for _ in numbers():
        found = known_here()
    return found


@pytest.mark.parametrize(
    ("function", "length"),
    [
        (constant, 5),
        (names, 4),
        (attribute, 5),
        (computed_attribute, 9),
        (property_that_is_not_asked, None),
        (global_list, 2),
        (numbered, 2),
        (pairs, 2),
        (axes, 3),
        (lengths, 3),
        (generator, None),
    ],
)
def test_the_header_of_a_loop_tells_its_length(
    function: Callable[[], int | None], length: int | None
) -> None:
    assert function() == length
