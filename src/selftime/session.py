"""Implements `selftime.profile`: records a program and analyses the recording in the same process.

All results come from the same views as for trace files. Tables of operators are computed from the
profiler's events in memory, other results from the trace that it writes.
"""

import os
import tempfile
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

from selftime.advice import Advice, advise
from selftime.capture import Profile, ProfilerAction
from selftime.capture.in_memory.tables import OptionalOperatorColumns, trace_tables_of_recording
from selftime.capture.profiler import profiler_options
from selftime.capture.profiler.profiled_ledger import ProfiledLedger, ledger_name_of
from selftime.ingest.load import load
from selftime.reports.tables.averages import OperatorAverages
from selftime.trace import Trace

_TORCH_DEVICE_BY_PREFIX: Final = (
    ("xpu_", "xpu"),
    ("mtia_", "mtia"),
    ("privateuse1_", "privateuse1"),
)
"""Pairs of the prefix of an event category and torch's name of the device type; all other
categories belong to `cuda`."""


class profile(Profile):  # noqa: N801 - named as the class that it stands in for
    """Records a program's operators, device work and Python frames, and analyses its time.

    Has the arguments and methods of `torch.profiler.profile`, so code for that class only needs
    another import. With a schedule it also takes down what all steps spend their wall time on, and
    writes that beside each trace, as `NAME.run.jsonl`; `ledger=False` turns that off.
    """

    def __init__(self, *, ledger: bool = True, **options: Any) -> None:
        super().__init__(**options)
        has_schedule = options.get("schedule") is not None
        self._ledger = ProfiledLedger() if ledger and has_schedule else None
        self._shows_frames = bool(options.get("with_stack"))
        """Whether views show Python frames; False if frames were recorded only to find module
        calls."""
        self._read: tuple[object, Trace] | None = None
        """The last recording whose trace file was read, and its `Trace`; None before the first."""
        self._tables_in_memory: tuple[object, OptionalOperatorColumns, Trace | None] | None = None
        """The last recording converted to tables in memory, the columns read, and the `Trace`."""

    def start(self) -> None:
        if self._ledger is not None and not self.running:
            self._ledger.start()
        super().start()

    def step(self) -> None:
        if self._ledger is not None and self.running:
            if self.current_action is ProfilerAction.NONE:
                self._ledger.end_step(perf_counter_ns())
            else:
                self._ledger.recorded_step_ends.append(perf_counter_ns())
        super().step()

    def stop(self) -> None:
        try:
            super().stop()
        finally:
            if self._ledger is not None:
                self._ledger.stop("ended by an exception" if self._ended_by_error else None)

    def prepare_trace(self) -> None:
        if self._ledger is not None:
            self._ledger.pause()
        super().prepare_trace()

    def stop_trace(self) -> None:
        super().stop_trace()
        if self._ledger is not None:
            self._ledger.resume()

    def write_trace(self, path: str | os.PathLike[str], *, use_python_export: bool = False) -> None:
        """Writes the last recording to a trace file, and the ledger of all steps beside it.

        The file appears when it is complete. A RecordingError says why it cannot be written.
        """
        has_ledger = self._ledger is not None and self._ledger.has_steps
        self.ledger_name = ledger_name_of(path) if has_ledger else None
        if self._recording.facts is not None:
            self._recording.facts["ledger"] = self.ledger_name
        super().write_trace(path, use_python_export=use_python_export)
        if self._ledger is not None and has_ledger:
            self._ledger.write_beside(Path(path))

    def trace(self) -> Trace:
        """Returns the trace of the last finished recording."""
        if self._read is None or self._read[0] is not self._recording:
            with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
                path = Path(folder, "recording.json")
                self.write_trace(path)
                found = load(path, cache=False)
            assert isinstance(found, Trace)  # noqa: S101 - a file holds one trace
            self._read = self._recording, found
        return self._read[1]

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool | None = None,
    ) -> Any:
        """Returns averages by operator, with the attributes and `.table()` of torch's result.

        Python functions are rows if `include_python_functions` says so; by default, as in the torch
        that is installed: until 2.13 wherever they were recorded, since 2.14 never. With
        `acc_events=True` the events of all cycles count, which no trace contains: then the result
        is torch's own.
        """
        profiler_options.check_table_grouping(
            self, by_shape=group_by_input_shape, by_stack=group_by_stack_n > 0
        )
        if getattr(self, "acc_events", False):  # an argument since 2.5
            return super().key_averages(
                group_by_input_shape,
                group_by_stack_n,
                group_by_overload_name,
                include_python_functions,
            )
        keys = [
            *(["shape"] if group_by_input_shape else []),
            *(["stack"] if group_by_stack_n > 0 else []),
            *(["overload"] if group_by_overload_name else []),
        ]
        if include_python_functions is None:
            include_python_functions = not profiler_options.HAS_OPTION_FOR_PYTHON_FUNCTIONS
        return self._key_averages_by(
            "+".join(keys) or "name", group_by_stack_n, has_frames=include_python_functions
        )

    def _trace_for_grouping(self, by: str) -> Trace:
        """Returns the trace to average operators of; for stacks, read from a trace file."""
        if "stack" in by or (self._read is not None and self._read[0] is self._recording):
            return self.trace()
        wanted = OptionalOperatorColumns(
            shapes="shape" in by and bool(self.record_shapes or self.with_flops),
            overloads="overload" in by,
            flops=bool(self.with_flops),
        )
        if self._tables_in_memory is None or self._tables_in_memory[:2] != (
            self._recording,
            wanted,
        ):
            tables = trace_tables_of_recording(self._results(), wanted)
            self._tables_in_memory = self._recording, wanted, tables
        held = self._tables_in_memory[2]
        return self.trace() if held is None else held

    def _key_averages_by(
        self, by: str, frames: int, *, has_frames: bool, top_level: bool = False
    ) -> OperatorAverages:
        """Returns averages of operators grouped by `by`, as torch's `key_averages` does."""
        trace = self._trace_for_grouping(by)
        options = {"by": by, "top_level": top_level, "python": self._shows_frames}
        if "stack" in by.split("+"):
            options["frames"] = frames
        table = trace.view("operators", **options)
        return OperatorAverages.of_view(
            table if has_frames else table.filter(table["kind"] != "frame"),
            device=_torch_device_type(trace),
            with_memory=self.profile_memory,
            with_flops=self.with_flops,
            top_level=None
            if top_level
            else lambda: self._key_averages_by(by, frames, has_frames=has_frames, top_level=True),
        )

    def advise(self) -> Advice:
        """Returns advice: source lines to change, how, and the time that each change saves."""
        return advise(self.trace())


def _torch_device_type(trace: Trace) -> str:
    """Returns torch's name, such as `cuda` or `xpu`, of the device type in a trace."""
    for category in trace.slices["category"].unique().cast(str).to_list():
        for prefix, name in _TORCH_DEVICE_BY_PREFIX:
            if category.startswith(prefix):
                return name
    return "cuda"
