"""Baselines: the step times and counts of a recording in a small file, for later checks."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from selftime.arrays import Floats as Values
from selftime.compare.comparability import Comparability
from selftime.compare.measures import MEASURES, measure_steps
from selftime.errors import SelftimeError, UsageError
from selftime.trace import Trace

FORMAT: Final = "selftime.baseline/1"
"""Name and version of the file format."""
_MOST: Final = 16 << 20
"""The largest file that is read, in bytes; a baseline has some hundred numbers."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The file's JSON object."""

    format: str
    source: str
    like: Comparability
    measures: dict[str, list[float]]


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """The measures of each step of a recording."""

    source: str
    """The path of the recording."""
    like: Comparability
    measures: dict[str, Values]
    """Values per step, by the measure's name."""

    @classmethod
    def of(cls, trace: Trace) -> "Baseline":
        return cls(trace.source, Comparability.of(trace), measure_steps(trace))

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Returns the baseline in a file that `to_json` wrote.

        Raises:
            UsageError: The file cannot be read, or is not a baseline.
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
            raise UsageError(f"`{path}` is not a baseline of selftime: {error}") from error
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
        """Returns the file's text, with keys in fixed order and numbers rounded to 6 decimals."""
        if not self.measures:
            raise SelftimeError(
                f"`{self.source}` has no measured steps: record with a `schedule` and "
                "`prof.step()`, or with `selftime run`"
            )
        numbers = {
            name: [round(value, 6) for value in self.measures[name].tolist()]
            for name in MEASURES
            if name in self.measures
        }
        head = {"format": FORMAT, "source": Path(self.source).name, "like": asdict(self.like)}
        return json.dumps({**head, "measures": numbers}, allow_nan=False, indent=1) + "\n"
