"""Simulates a CUDA device on the CPU, within a `with` block or a whole program."""

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.preflight import device_api, legacy_types, torch_internals, unchecked_apis
from selftime.capture.preflight.function_mode import PreflightFunctionMode
from selftime.capture.preflight.operator_mode import PreflightOperatorMode
from selftime.capture.preflight.reporter import WaitReporter
from selftime.capture.preflight.results import Found


class FakeDevice:
    """Simulates a CUDA device on the CPU; adds each wait of the host for the device to `found`.

    `user_paths` returns folders or files that count as the user's although they are installed.
    """

    def __init__(self, found: Found, user_paths: Callable[[], Sequence[str]]) -> None:
        self._reporter = WaitReporter(found, user_paths)
        self._patches = AttributePatches()
        self._modes = (PreflightOperatorMode(self._reporter), PreflightFunctionMode(self._reporter))
        self._is_installed = False

    def install(self) -> None:
        """Starts the simulation in this thread and in all threads that are started later."""
        try:
            self._replace_functions()
        except BaseException:
            self._patches.restore_all()
            raise
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._deactivate_in_child)
        for mode in self._modes:
            mode.__enter__()  # type: ignore[no-untyped-call]  # torch's own
        self._is_installed = True

    def _replace_functions(self) -> None:
        reporter, patches = self._reporter, self._patches
        device_api.replace_device_functions(patches, reporter)
        torch_internals.replace_torch_internals(patches, reporter)
        legacy_types.replace_legacy_types(patches, reporter)
        unchecked_apis.replace_unchecked_apis(patches, reporter)
        _simulate_device_in_threads(patches, reporter)

    def uninstall(self) -> None:
        """Ends the simulation; tensors on the simulated device become CPU tensors."""
        if not self._is_installed:
            return
        self._is_installed = False
        for mode in reversed(self._modes):
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # torch's own
        self._patches.restore_all()
        self._reporter.is_disabled = True

    def on_step_end(self) -> None:
        """Stores that a step has ended: further operators are outside the forward pass."""
        self._reporter.user_frames.is_forward = False

    def _deactivate_in_child(self) -> None:
        """Ends the simulation in a forked child, such as a DataLoader worker."""
        self._reporter.is_disabled = True


def _simulate_device_in_threads(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Simulates the device in each thread started later, since torch's modes are per thread."""

    def make_wrapper(original: Any) -> Any:
        @functools.wraps(original)
        def start(thread: threading.Thread) -> None:
            thread.run = _run_with_simulation_modes(thread.run, reporter)  # type: ignore[method-assign]  # the purpose
            original(thread)

        return start

    patches.wrap_attribute(threading.Thread, "start", make_wrapper)


def _run_with_simulation_modes(run: Any, reporter: WaitReporter) -> Any:
    @functools.wraps(run)
    def run_with_modes() -> None:
        with PreflightOperatorMode(reporter), PreflightFunctionMode(reporter):
            run()

    return run_with_modes


@contextmanager
def preflight(*, own: Sequence[str] = ()) -> Iterator[Found]:
    """Simulates a CUDA device in a `with` block; yields the waits of the host for the device.

    >>> import torch
    >>> with preflight() as found:
    ...     loss = torch.ones(3, device="cuda").sum()
    ...     value = loss.item()
    >>> [(site.op, site.kind, site.times) for site in found.sites]
    [('aten::item', 'sync', 1)]

    `found` can be read in the block and after it. Call `found.end_step()` between steps; then
    `found.sites` contains only what occurs in the steps between the first and the last call, and
    `found.outside` the rest. `own` are folders or files whose lines count as the user's although
    they are installed.
    """
    found = Found()
    fake_device = FakeDevice(found, lambda: own)
    fake_device.install()
    try:
        yield found
    finally:
        fake_device.uninstall()
