"""Writes commands that print the numbers of the advice again, so that readers can verify them."""

import math
from dataclasses import dataclass
from shlex import quote
from typing import Final, Protocol

import polars as pl

from selftime.advice.advice_result import Advice
from selftime.advice.rule_definition import Evidence
from selftime.reports.plain import plain
from selftime.trace import Trace

_JOB_PATH_SHELL_VARIABLE: Final = "J"
"""Name of the shell variable that holds the path of the job's traces."""
_TRACE_PATH_SHELL_VARIABLE: Final = "T"
"""Name of the shell variable that holds the path of the trace."""
_MAX_PATH_CHARACTERS: Final = 200
"""Largest number of characters of a path in a command; a longer one becomes `PATH`."""
_NS_PER_MS: Final = 1_000_000
_SLICE_DURATION_RELATIVE_TOLERANCE: Final = 1e-9
"""Largest relative difference between a measured number and the duration of its slice."""


class FollowUpQueries(Protocol):
    """Writes queries that return parts of the advice: shell commands, or an agent's tool calls."""

    @property
    def name_definitions(self) -> str:
        """Text, such as shell variables, that defines names for the traces in the queries."""

    def full_answer_query(self) -> str:
        """Returns the query for the complete advice."""

    def all_numbers_query(self) -> str:
        """Returns the query for all numbers of the advice."""

    def finding_query(self, id_or_rule: str) -> str:
        """Returns the query for a finding by its id, or for a rule by its name."""

    def typical_step_query(self, advice: Advice) -> str:
        """Returns the query for the host and device time of the typical step."""

    def slice_query(self, slice_id: int) -> str:
        """Returns the query for a slice by its id."""

    def evidence_query(self, evidence: Evidence) -> str | None:
        """Returns the query for the slice whose duration is the given number, or None."""


@dataclass(frozen=True, slots=True)
class ShellQueries:
    """Writes shell commands that print parts of the advice; shell variables hold the paths.

    `path` is the trace or folder that `selftime advise` was given. Event ids are those of `trace`,
    the trace that the advice is about.
    """

    path: str
    trace: Trace | None = None
    trace_path: str | None = None
    """Path of the trace in commands; None means the path that the trace was read from."""

    @property
    def name_definitions(self) -> str:
        """Assignments of paths to the shell variables `T` and `J`, which the commands use."""
        assignments = [
            f"{_TRACE_PATH_SHELL_VARIABLE}={_path_quoted_for_shell(self._trace_path_in_commands)}"
        ]
        if self._shell_variable_of_advised_path != _TRACE_PATH_SHELL_VARIABLE:
            assignments.append(f"{_JOB_PATH_SHELL_VARIABLE}={_path_quoted_for_shell(self.path)}")
        return " ".join(assignments)

    def full_answer_query(self) -> str:
        return f"selftime advise ${self._shell_variable_of_advised_path} --format markdown --all"

    def all_numbers_query(self) -> str:
        return f"selftime advise ${self._shell_variable_of_advised_path} --format json"

    def finding_query(self, id_or_rule: str) -> str:
        """Returns the command for a finding by its id, or for a rule by its name."""
        return f"selftime advise ${self._shell_variable_of_advised_path} --finding {id_or_rule}"

    def view_command(self, name: str, options: str = "") -> str:
        """Returns the command that prints a view of the trace."""
        return f"selftime view {name} ${_TRACE_PATH_SHELL_VARIABLE} {options}".rstrip()

    def typical_step_query(self, advice: Advice) -> str:
        """Returns the command that prints the host and device time of the typical step."""
        is_known = advice.step.host_ms is not None or advice.step.device_ms is not None
        return (
            self.view_command("overview")
            if is_known and self.trace is not None
            else self.all_numbers_query()
        )

    def slice_query(self, slice_id: int) -> str:
        return self.view_command("slice", f"--id {slice_id}")

    def evidence_query(self, evidence: Evidence) -> str | None:
        """Returns the command that prints the slice whose duration is the given number, or None."""
        slice_id = None if self.trace is None else slice_id_of_evidence(self.trace, evidence)
        return None if slice_id is None else self.slice_query(slice_id)

    @property
    def _trace_path_in_commands(self) -> str:
        source = None if self.trace is None else self.trace.source
        return self.trace_path or source or self.path

    @property
    def _shell_variable_of_advised_path(self) -> str:
        return (
            _TRACE_PATH_SHELL_VARIABLE
            if self._trace_path_in_commands == self.path
            else _JOB_PATH_SHELL_VARIABLE
        )


def slice_id_of_evidence(trace: Trace, evidence: Evidence) -> int | None:
    """Returns the id of the slice whose duration equals a measured number; None if none does."""
    if evidence.unit not in ("ms", "ns") or evidence.value is None:
        return None
    slice_ids = [slice_id for slice_id in evidence.events if slice_id < trace.slices.height]
    durations = trace.slices["duration"].gather(slice_ids).cast(pl.Float64)
    value = evidence.value * (_NS_PER_MS if evidence.unit == "ms" else 1)
    for slice_id, duration in zip(slice_ids, durations, strict=True):
        if duration is not None and math.isclose(
            duration, value, rel_tol=_SLICE_DURATION_RELATIVE_TOLERANCE
        ):
            return slice_id
    return None


def _path_quoted_for_shell(path: str) -> str:
    """Returns the path quoted for a shell; `PATH` instead of a long or unprintable path."""
    is_usable = len(path) <= _MAX_PATH_CHARACTERS and plain(path) == path and "`" not in path
    return quote(path) if is_usable else "PATH"
