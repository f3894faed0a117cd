"""What a recording took, kept in a small file to hold later ones against."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from selftime.arrays import Floats as Values
from selftime.compare.comparability import Likeness
from selftime.compare.measures import MEASURES, measured
from selftime.errors import SelftimeError, UsageError
from selftime.trace import Trace

FORMAT: Final = "selftime.baseline/1"
"""The name and version of the file."""
_MOST: Final = 16 << 20
"""Bytes; a baseline has some hundred numbers."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The file as it is written."""

    format: str
    source: str
    like: Likeness
    measures: dict[str, list[float]]


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """What each step of a recording took."""

    source: str
    """Where the recording was read from."""
    like: Likeness
    measures: dict[str, Values]
    """What each step took, by the measure's name."""

    @classmethod
    def of(cls, trace: Trace) -> "Baseline":
        return cls(trace.source, Likeness.of(trace), measured(trace))

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Read a file that `to_json` made.

        Raises:
            UsageError: It is none, or cannot be read.
        """
        try:
            with path.open("rb") as file:
                text = file.read(_MOST + 1)
        except OSError as error:
            raise UsageError(
                f"`{path}` cannot be read: {error.strerror}; write a baseline with "
                "`selftime check TRACE --write-baseline FILE`"
            ) from error
        try:
            found = msgspec.json.decode(text, type=_File)
        except msgspec.DecodeError as error:
            raise UsageError(f"`{path}` is no baseline of selftime: {error}") from error
        if found.format != FORMAT:
            raise UsageError(
                f"`{path}` has the format `{found.format[:40]}`, and this version reads "
                f"`{FORMAT}`: write it anew"
            )
        values = {
            name: np.array(each, np.float64)
            for name, each in found.measures.items()
            if name in MEASURES and each
        }
        return cls(found.source, found.like, values)

    def to_json(self) -> str:
        """The file; keys in one order, numbers rounded to 6 decimals."""
        if not self.measures:
            raise SelftimeError(
                f"`{self.source}` tells nothing of its steps: record with a `schedule` and "
                "`prof.step()`, or with `selftime run`"
            )
        numbers = {
            name: [round(value, 6) for value in self.measures[name].tolist()]
            for name in MEASURES
            if name in self.measures
        }
        head = {"format": FORMAT, "source": Path(self.source).name, "like": asdict(self.like)}
        return json.dumps({**head, "measures": numbers}, allow_nan=False, indent=1) + "\n"
