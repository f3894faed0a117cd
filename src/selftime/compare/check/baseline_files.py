"""Reads and writes baseline files: a recording's step times and event counts, as JSON."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from selftime.array_types import Floats as Values
from selftime.compare.check.step_measures import MEASURES, measure_steps
from selftime.compare.comparability import Comparability
from selftime.compare.run_figures import baseline_measures, run_measure
from selftime.compare.section_statistics import SectionedFigure
from selftime.errors import SelftimeError, UsageError
from selftime.run import Run
from selftime.trace import Trace

BASELINE_FORMAT: Final = "selftime.baseline/1"
"""Name and version of the format of baseline files."""
_MAX_BASELINE_FILE_BYTES: Final = 16 << 20
"""Size in bytes above which a baseline file is refused; a baseline has only some hundred
numbers."""


class _BaselineFile(msgspec.Struct, forbid_unknown_fields=True, rename={"comparability": "like"}):
    """Content of a baseline file: format, recording, machine properties, and values per step."""

    format: str
    source: str
    comparability: Comparability
    measures: dict[str, list[float]]


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Step times and event counts of a recording, with which later recordings are compared."""

    source: str
    """Path of the recording that the baseline was made from."""
    comparability: Comparability
    measures: dict[str, Values]
    """One value per steady step for each measure, such as `host_ms`, by the measure's name."""
    run_measures: dict[str, SectionedFigure] = field(default_factory=dict)
    """Figures of the run, by the name of the measure; empty without a ledger of the run."""

    @classmethod
    def from_trace(cls, trace: Trace) -> "Baseline":
        told = {
            measure.name: measure.figure
            for measure in baseline_measures(trace.run)
            if measure.figure is not None
        }
        return cls(trace.source, Comparability.from_trace(trace), measure_steps(trace), told)

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Reads a baseline from a JSON file that was written with `to_json`.

        Raises:
            UsageError: The file cannot be read, or is not a baseline.
        """
        try:
            with path.open("rb") as file:
                text = file.read(_MAX_BASELINE_FILE_BYTES + 1)
        except OSError as error:
            raise UsageError(
                f"`{path}` cannot be read: {error.strerror}; write a baseline with "
                "`selftime check TRACE --write-baseline FILE`"
            ) from error
        try:
            found = msgspec.json.decode(text, type=_BaselineFile)
        except msgspec.DecodeError as error:
            raise UsageError(f"`{path}` is not a baseline of selftime: {error}") from error
        if found.format != BASELINE_FORMAT:
            raise UsageError(
                f"`{path}` has the format `{found.format[:40]}`, and this version reads "
                f"`{BASELINE_FORMAT}`: write the file again"
            )
        values = {
            name: np.array(each, np.float64)
            for name, each in found.measures.items()
            if name in MEASURES and each
        }
        told = {
            name: SectionedFigure(each[0], tuple(each[1:]))
            for name, each in found.measures.items()
            if name not in MEASURES and each and run_measure(Run(), name) is not None
        }
        return cls(found.source, found.comparability, values, told)

    def to_json(self) -> str:
        """Returns the baseline as JSON: keys in fixed order, numbers rounded to 6 decimals."""
        if not (self.measures or self.run_measures):
            raise SelftimeError(
                f"`{self.source}` has no measured steps: record with a `schedule` and "
                "`prof.step()`, or with `selftime run`"
            )
        numbers = {
            name: [round(value, 6) for value in self.measures[name].tolist()]
            for name in MEASURES
            if name in self.measures
        }
        for name, figure in self.run_measures.items():
            numbers[name] = [round(value, 6) for value in (figure.whole, *figure.sections)]
        head = {
            "format": BASELINE_FORMAT,
            "source": Path(self.source).name,
            "like": asdict(self.comparability),
        }
        return json.dumps({**head, "measures": numbers}, allow_nan=False, indent=1) + "\n"
