"""The pretence as a whole: put up for a block, or for a program, and taken down again."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from selftime.capture.patches import Patches
from selftime.capture.preflight import compiled, device_api, internals, legacy_types
from selftime.capture.preflight.calls import Calls
from selftime.capture.preflight.dispatching import Operators
from selftime.capture.preflight.found import Found
from selftime.capture.preflight.threads import follow_threads
from selftime.capture.preflight.watch import Watch


class Pretence:
    """`cuda` works, as if there were a device; `found` fills."""

    def __init__(self, found: Found, own: Callable[[], Sequence[str]]) -> None:
        self._watch = Watch(found, own)
        self._patches = Patches()
        self._modes = (Operators(self._watch), Calls(self._watch))
        self._is_up = False

    def put_up(self) -> None:
        """Pretend in this thread, and in all that it starts."""
        try:
            self._patch()
        except BaseException:
            self._patches.undo()
            raise
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave)
        for mode in self._modes:
            mode.__enter__()  # type: ignore[no-untyped-call]  # torch's own
        self._is_up = True

    def _patch(self) -> None:
        watch, patches = self._watch, self._patches
        device_api.install(patches, watch)
        internals.install(patches, watch)
        legacy_types.install(patches, watch)
        compiled.install(patches, watch)
        follow_threads(patches, watch)

    def take_down(self) -> None:
        """Let torch be as it was; tensors that pretended are on the CPU, where they always were."""
        if not self._is_up:
            return
        self._is_up = False
        for mode in reversed(self._modes):
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # torch's own
        self._patches.undo()
        self._watch.inert = True

    def step_ended(self) -> None:
        """What comes next is not forward before something is called."""
        self._watch.where.is_building = False

    def _leave(self) -> None:
        """In a forked child, such as a worker of a DataLoader: torch works as ever."""
        self._watch.inert = True


@contextmanager
def preflight(*, own: Sequence[str] = ()) -> Iterator[Found]:
    """Run a block with a CUDA device that is pretended, and find where the host would wait.

    >>> import torch
    >>> with preflight() as found:
    ...     loss = torch.ones(3, device="cuda").sum()
    ...     value = loss.item()
    >>> [(site.op, site.kind, site.times) for site in found.sites]
    [('aten::item', 'sync', 1)]

    `found` can be read in the block and after it. `found.end_step()` tells steps apart; then only
    what recurs after the first step is in `found.sites`, and the rest in `found.outside`. `own`
    are folders or files whose lines count as the user's although they are installed.
    """
    found = Found()
    pretence = Pretence(found, lambda: own)
    pretence.put_up()
    try:
        yield found
    finally:
        pretence.take_down()
