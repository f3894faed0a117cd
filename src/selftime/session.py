"""`selftime.profile`: recording joined with the answers.

Everything it prints comes from the same views as everywhere: what a program is told while it runs,
and what a file tells later, are the same numbers. Tables of operators are counted from what the
recorder holds in memory, the rest from the trace that it writes.
"""

import tempfile
from pathlib import Path
from typing import Any, Final

from selftime.advice import Advice, advise
from selftime.capture import Profile, profiler_pitfalls
from selftime.capture.in_memory.tables import Wanted, read_tables
from selftime.ingest.load import load
from selftime.reports.tables.averages import Averages
from selftime.trace import Trace

_DEVICE_NAMES: Final = (("xpu_", "xpu"), ("mtia_", "mtia"), ("privateuse1_", "privateuse1"))


class profile(Profile):  # noqa: N801 - named as the class that it stands in for
    """Record a program's operators, device work and Python, and say where its time goes.

    Takes every argument of `torch.profiler.profile` and has its methods, so that a tutorial's code
    runs with its import changed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._shows_frames = bool(options.get("with_stack"))
        """Whether frames were asked for; modules alone need them too, but torch shows none."""
        self._read: tuple[object, Trace] | None = None
        """The recording that was read last, and its trace."""
        self._held: tuple[object, Wanted, Trace | None] | None = None
        """The recording whose tables were read last from memory, and what they hold."""

    def trace(self) -> Trace:
        """The last recording, as `selftime.load` gives it."""
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
    ) -> Any:
        """The operator table: rows with torch's attributes, and `.table()` in torch's form.

        With `acc_events=True` the events of all cycles count, which no trace holds: then the answer
        is torch's own.
        """
        profiler_pitfalls.check_grouping(
            self, by_shape=group_by_input_shape, by_stack=group_by_stack_n > 0
        )
        if self.acc_events:
            return super().key_averages(
                group_by_input_shape, group_by_stack_n, group_by_overload_name
            )
        keys = [
            *(["shape"] if group_by_input_shape else []),
            *(["stack"] if group_by_stack_n > 0 else []),
            *(["overload"] if group_by_overload_name else []),
        ]
        return self._averages("+".join(keys) or "name", group_by_stack_n)

    def _counted(self, by: str) -> Trace:
        """The tables that a grouping is counted from; stacks are in the trace file alone."""
        if "stack" in by or (self._read is not None and self._read[0] is self._recording):
            return self.trace()
        wanted = Wanted(
            shapes="shape" in by and bool(self.record_shapes or self.with_flops),
            overloads="overload" in by,
            flops=bool(self.with_flops),
        )
        if self._held is None or self._held[:2] != (self._recording, wanted):
            self._held = self._recording, wanted, read_tables(self._results(), wanted)
        held = self._held[2]
        return self.trace() if held is None else held

    def _averages(self, by: str, frames: int, *, top_level: bool = False) -> Averages:
        trace = self._counted(by)
        return Averages.of_view(
            trace.view(
                "operators", by=by, frames=frames, top_level=top_level, python=self._shows_frames
            ),
            device=_device_name(trace),
            with_memory=self.profile_memory,
            with_flops=self.with_flops,
            top_level=None if top_level else lambda: self._averages(by, frames, top_level=True),
        )

    def advise(self) -> Advice:
        """What to change in the program, on which line, and what it saves."""
        return advise(self.trace())


def _device_name(trace: Trace) -> str:
    """What torch calls the kind of device that the trace's calls are for."""
    for category in trace.slices["category"].unique().cast(str).to_list():
        for prefix, name in _DEVICE_NAMES:
            if category.startswith(prefix):
                return name
    return "cuda"
