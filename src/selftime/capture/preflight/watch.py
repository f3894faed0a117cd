"""What all parts of the pretence share: where to report, and what to keep quiet about."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from selftime.capture.preflight import fixes
from selftime.capture.preflight.found import HARMLESS, Found, Kind, Place, Wait
from selftime.capture.preflight.marks import on_device, tensors_in
from selftime.capture.preflight.user_frame import Whereabouts

Call = Literal["host", "device"]


_READING: Final = {
    "ProdBackward0": ("aten::prod", fixes.PRODUCT),
    "ProdBackward1": ("aten::prod", fixes.PRODUCT),
    "CumprodBackward0": ("aten::cumprod", fixes.PRODUCT),
    "MaskedFillBackward1": ("aten::masked_select", fixes.MASK),
}
"""Gradients whose formula reads on the host, and takes another way as long as a mode is on."""
_VALUE: Final = 1
"""The edge of `masked_fill` to its value: the formula reads only if that has a gradient."""


class _PerThread(threading.local):
    quiet = 0
    plain = 0
    call: Call | None = None


class Watch:
    """Reports to `found`, unless this thread is quiet or the process was forked off."""

    def __init__(self, found: Found, own: Callable[[], Sequence[str]]) -> None:
        self.found = found
        self.where = Whereabouts(own, _reads, self._on_gradient)
        self.inert = False
        """Set to make everything do nothing more than torch does; a forked child sets it."""
        self._thread = _PerThread()

    @property
    def call(self) -> Call | None:
        """Whether the torch function that runs now was given something on the device."""
        return self._thread.call

    @call.setter
    def call(self, call: Call | None) -> None:
        self._thread.call = call

    @property
    def plain(self) -> bool:
        """Whether operators pass as they are: we make the data of a tensor ourselves."""
        return self._thread.plain > 0

    def report(self, op: str, kind: Kind, fix: str) -> None:
        """The host would wait here for `op`."""
        self._add(op, kind, fix)

    def harmless(self, op: str) -> None:
        """A copy that the host does not wait for."""
        self._add(op, HARMLESS, "")

    def _add(self, op: str, kind: str, fix: str) -> None:
        if not self._thread.quiet and not self.inert:
            here = self.where.here()
            fix = fixes.in_context(fix, here.via, branches=here.branches)
            self.found.add(Wait(here.place, op, kind, here.phase, fix))

    def _on_gradient(self, place: Place, name: str, grads: Any) -> None:
        if not self.inert and any(map(on_device, tensors_in(grads))):
            op, fix = _READING[name]
            self.found.add(Wait(place, op, "sync", "backward", fix))

    def leave_unchecked(self, why: str) -> None:
        if not self.inert:
            self.found.leave_unchecked(self.where.here().place, why)

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Report nothing: the whole was reported, or it is not what the device does."""
        self._thread.quiet += 1
        try:
            yield
        finally:
            self._thread.quiet -= 1

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Let operators pass as they are."""
        self._thread.plain += 1
        try:
            yield
        finally:
            self._thread.plain -= 1


def _reads(node: Any) -> bool:
    """Whether the gradient of a node is one that reads on the host."""
    name = node.name()
    if name == "MaskedFillBackward1":
        return node.next_functions[_VALUE][0] is not None
    return name in _READING
