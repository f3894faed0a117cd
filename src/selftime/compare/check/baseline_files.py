"""Reads and writes baseline files: step times and event counts of some runs, as JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from selftime.compare.check.measured_runs import MeasuredRun
from selftime.compare.comparability import Comparability
from selftime.errors import SelftimeError, UsageError
from selftime.trace import Trace

BASELINE_FORMAT: Final = "selftime.baseline/1"
"""Name and version of the format of baseline files."""
_MAX_BASELINE_FILE_BYTES: Final = 16 << 20
"""Size in bytes above which a baseline file is refused; a baseline has only some hundred numbers
for each of its runs."""
_FORMAT_LOOKED_FOR_IN_BYTES: Final = 200
"""Number of first bytes of a JSON file in which the name of the format of a baseline stands."""


class RunInFile(msgspec.Struct, forbid_unknown_fields=True, rename={"comparability": "like"}):
    """A run in a file: the recording, properties of the machine, and values per step."""

    source: str
    comparability: Comparability
    measures: dict[str, list[float]]
    load: float | None = None
    core_wait: float | None = None

    def measured_run(self) -> MeasuredRun:
        run = MeasuredRun.from_numbers(self.source, self.comparability, self.measures)
        return replace(run, load=self.load, core_wait=self.core_wait)


class _BaselineFile(RunInFile, forbid_unknown_fields=True, kw_only=True):
    """Content of a baseline file: the first run, and further ones."""

    format: str
    more_runs: list[RunInFile] = []


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """The runs with which later ones are compared; at least one."""

    runs: tuple[MeasuredRun, ...]

    @classmethod
    def from_traces(cls, *traces: Trace) -> "Baseline":
        return cls(tuple(map(MeasuredRun.from_trace, traces)))

    @property
    def source(self) -> str:
        """Returns the path of the recording, or how many there are beside the first."""
        first = self.runs[0].source
        return first if len(self.runs) == 1 else f"{first} and {len(self.runs) - 1} more"

    @property
    def measures(self) -> tuple[str, ...]:
        """Returns the names of all measures that a run has, in order."""
        every = (name for run in self.runs for name in (*run.measures, *run.run_measures))
        return tuple(dict.fromkeys(every))

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
        return cls(tuple(run.measured_run() for run in (found, *found.more_runs)))

    def to_json(self) -> str:
        """Returns the baseline as JSON: keys in fixed order, numbers rounded to 6 decimals."""
        for run in self.runs:
            refuse_run_without_steps(run)
        first, *more = (run.as_json_data() for run in self.runs)
        content = {"format": BASELINE_FORMAT, **first}
        if more:
            content["more_runs"] = more
        return json.dumps(content, allow_nan=False, indent=1) + "\n"


def refuse_run_without_steps(run: MeasuredRun) -> None:
    """Raises a SelftimeError if nothing was measured in a run."""
    if not (run.measures or run.run_measures):
        raise SelftimeError(
            f"`{run.source}` has no measured steps: record with a `schedule` and `prof.step()`, or "
            "with `selftime run`"
        )


def is_baseline_file(path: str) -> bool:
    """Returns whether a file begins as a baseline does; other files may be traces."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(_FORMAT_LOOKED_FOR_IN_BYTES)
    except OSError:  # a folder, an address, or a file that reading it as a trace reports
        return False
    return b'"selftime.baseline/' in head


def joined_baselines(baselines: Sequence[Baseline]) -> Baseline:
    """Returns one baseline with the runs of several."""
    return Baseline(tuple(run for one in baselines for run in one.runs))
