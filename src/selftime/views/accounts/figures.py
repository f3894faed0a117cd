"""Single numbers that say what they are: the rows of an overview."""

from dataclasses import dataclass

from selftime import units
from selftime.units import Unit

__all__ = ["Figure", "ratio"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, or one word, with its definition; a value of None is not known."""

    section: str
    metric: str
    value: float | None
    unit: Unit
    definition: str
    words: str | None = None
    """What people read, where it is not the value in its unit."""
    device: int | None = None
    share: float | None = None
    """Of the whole that the figure is a part of."""

    @property
    def text(self) -> str | None:
        if self.words is not None or self.value is None:
            return self.words
        text = units.text(self.value, self.unit)
        return text if self.share is None else f"{text} ({units.text(self.share, 'ratio')})"


def ratio(
    section: str, metric: str, part: float | None, whole: float | None, definition: str
) -> Figure:
    """The figure of a share; unknown if the part is, or if there is no whole."""
    value = None if part is None or not whole else part / whole
    return Figure(section, metric, value, "ratio", definition)
