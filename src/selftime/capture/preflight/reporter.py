"""Stores each wait of the host for the simulated device, with the user's source line."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from selftime.capture.preflight import fixes
from selftime.capture.preflight.locations import is_on_device, nested_tensors_in
from selftime.capture.preflight.results import (
    HARMLESS_COPY_KIND,
    HostWait,
    PreflightWaits,
    UserSourceLocation,
    WaitKind,
)
from selftime.capture.preflight.user_frame import UserFrameFinder

CallDevice = Literal["host", "device"]


_OPERATOR_AND_FIX_BY_GRADIENT_NODE: Final = {
    "ProdBackward0": ("aten::prod", fixes.FIX_FOR_PRODUCT_GRADIENT),
    "ProdBackward1": ("aten::prod", fixes.FIX_FOR_PRODUCT_GRADIENT),
    "CumprodBackward0": ("aten::cumprod", fixes.FIX_FOR_PRODUCT_GRADIENT),
    "MaskedFillBackward1": ("aten::masked_select", fixes.FIX_FOR_BOOLEAN_MASK),
}
"""Maps autograd nodes whose gradient reads a value on the host, only on CUDA, to (operator,
advice)."""
_INDEX_OF_MASKED_FILL_VALUE_EDGE: Final = 1
"""Index, among the inputs of the autograd node of `masked_fill`, of the fill value."""


class _ReporterThreadState(threading.local):
    muted = 0
    passes_through = 0
    call_device: CallDevice | None = None


class WaitReporter:
    """Adds each wait of the host to `found`, unless reports are switched off in this thread."""

    def __init__(self, found: PreflightWaits, user_paths: Callable[[], Sequence[str]]) -> None:
        self.found = found
        self.user_frames = UserFrameFinder(
            user_paths, _does_gradient_read_on_host, self._report_host_read_of_gradient
        )
        self.is_disabled = False
        """Whether the simulation is off, as in a forked child: all patches only call torch's own
        functions."""
        self._thread = _ReporterThreadState()

    @property
    def call_device(self) -> CallDevice | None:
        """Returns `device` if the current torch call has an argument there, else `host`.

        None outside of torch functions.
        """
        return self._thread.call_device

    @call_device.setter
    def call_device(self, call_device: CallDevice | None) -> None:
        self._thread.call_device = call_device

    @property
    def passes_through(self) -> bool:
        """Returns whether operators run without checks, because selftime itself copies data."""
        return self._thread.passes_through > 0

    def report_wait(self, op: str, kind: WaitKind, fix: str) -> None:
        """Stores that operator `op` makes the host wait at the user's current line."""
        self._add_wait(op, kind, fix)

    def report_harmless_copy(self, op: str) -> None:
        """Stores that the user's current line makes a copy for which the host does not wait."""
        self._add_wait(op, HARMLESS_COPY_KIND, "")

    def _add_wait(self, op: str, kind: str, fix: str) -> None:
        if not self._thread.muted and not self.is_disabled:
            current = self.user_frames.find_current_line()
            fix = fixes.fix_in_context(
                fix, current.torch_files, reads_condition=current.reads_condition
            )
            self.found.add_wait(HostWait(current.location, op, kind, current.phase, fix))

    def _report_host_read_of_gradient(
        self, location: UserSourceLocation, name: str, grads: Any
    ) -> None:
        if not self.is_disabled and any(map(is_on_device, nested_tensors_in(grads))):
            op, fix = _OPERATOR_AND_FIX_BY_GRADIENT_NODE[name]
            self.found.add_wait(HostWait(location, op, "sync", "backward", fix))

    def leave_unchecked(self, why: str) -> None:
        """Stores that the user's current line cannot be checked; `why` is the reason."""
        if not self.is_disabled:
            self.found.leave_unchecked(self.user_frames.find_current_line().location, why)

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Switches reports of waits off within a `with` block, as for waits already reported."""
        self._thread.muted += 1
        try:
            yield
        finally:
            self._thread.muted -= 1

    @contextmanager
    def pass_through(self) -> Iterator[None]:
        """Lets operators in a `with` block run without checks."""
        self._thread.passes_through += 1
        try:
            yield
        finally:
            self._thread.passes_through -= 1


def _does_gradient_read_on_host(node: Any) -> bool:
    """Returns whether computing the gradient of this autograd node reads a value on the host."""
    name = node.name()
    if name == "MaskedFillBackward1":
        return node.next_functions[_INDEX_OF_MASKED_FILL_VALUE_EDGE][0] is not None
    return name in _OPERATOR_AND_FIX_BY_GRADIENT_NODE
