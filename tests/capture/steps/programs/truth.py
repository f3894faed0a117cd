"""What a program's steps are, in its own words, and what was seen of them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from selftime.capture.steps import StepDetector, StepSource

__all__ = ["At", "Program", "Seen", "steps", "watch"]

At = Callable[[str], None]
"""Says where the program is."""

END = "the end"


@dataclass
class Seen:
    """Where the program said it was, and the boundaries between."""

    events: list[str | StepSource] = field(default_factory=list)
    unlike: list[list[str]] = field(default_factory=list)
    """What the program said in each step that was told to be unlike the others."""

    @property
    def source(self) -> StepSource | None:
        """The best that has spoken."""
        return max((e for e in self.events if isinstance(e, StepSource)), default=None)

    def gaps(self) -> list[tuple[str, int, str]]:
        """Between two sayings: the first, the boundaries of the best source, the second."""
        found: list[tuple[str, int, str]] = []
        place, count = "the beginning", 0
        for event in [*self.events, END]:
            if isinstance(event, StepSource):
                count += event is self.source
            else:
                found.append((place, count, event))
                place, count = event, 0
        return found

    def boundaries(self, after: str, before: str) -> list[int]:
        """How many there were in each gap from the one saying to the other."""
        return [n for a, n, b in self.gaps() if (a, b) == (after, before)]

    def elsewhere(self, after: str, before: str) -> list[tuple[str, int, str]]:
        """Boundaries in other gaps."""
        return [(a, n, b) for a, n, b in self.gaps() if n and (a, b) != (after, before)]


@dataclass(frozen=True)
class Program:
    """A program and where its steps end."""

    run: Callable[[At], None]
    source: StepSource
    after: str
    before: str
    """Each boundary falls between these two sayings."""
    found: int
    """Steps that may go by until the boundaries are found."""

    @property
    def name(self) -> str:
        return self.run.__name__


def steps(
    source: StepSource, after: str, before: str, *, found: int = 0
) -> Callable[[Callable[[At], None]], Program]:
    """Tell where the steps of the program end that follows."""
    return lambda run: Program(run, source, after, before, found)


def watch(program: Callable[[At], None]) -> Seen:
    """Run it in this process, and look for its steps."""
    seen = Seen()

    def unlike() -> None:
        step: list[str] = []
        for event in seen.events:
            step = [] if isinstance(event, StepSource) else [*step, event]
        seen.unlike.append(step)

    watching = StepDetector(seen.events.append, lambda: None, unlike, is_recording=lambda: False)
    watching.attach()
    try:
        program(seen.events.append)
    finally:
        watching.detach()
    return seen
