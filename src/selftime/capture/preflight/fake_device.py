"""Simulates a CUDA device on the CPU, within a `with` block or a whole program."""

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.preflight import device_api, fixes, torch_internals, unchecked_apis
from selftime.capture.preflight.function_mode import PreflightFunctionMode
from selftime.capture.preflight.locations import TensorLocation, is_on_device, set_location
from selftime.capture.preflight.operator_mode import PreflightOperatorMode
from selftime.capture.preflight.reporter import WaitReporter
from selftime.capture.preflight.results import PreflightWaits


class FakeDevice:
    """Simulates a CUDA device on the CPU; adds each wait of the host for the device to `found`.

    `user_paths` returns folders or files that count as the user's although they are installed.
    """

    def __init__(self, found: PreflightWaits, user_paths: Callable[[], Sequence[str]]) -> None:
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
        replace_legacy_types(patches, reporter)
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
def preflight(*, own: Sequence[str] = ()) -> Iterator[PreflightWaits]:
    """Simulates a CUDA device in a `with` block; yields the waits of the host for the device.

    >>> import torch
    >>> with preflight() as found:
    ...     loss = torch.ones(3, device="cuda").sum()
    ...     value = loss.item()
    >>> [(site.op, site.kind, site.times) for site in found.sites]
    [('aten::item', 'sync', 1)]

    `found` can be read in the block and after it. Call `found.end_step()` between steps; then
    `found.sites` contains only what occurs in the steps between the first and the last call, and
    `found.sites_outside_steps` the rest. `own` are folders or files whose lines count as the
    user's although they are installed.
    """
    found = PreflightWaits()
    fake_device = FakeDevice(found, lambda: own)
    fake_device.install()
    try:
        yield found
    finally:
        fake_device.uninstall()


_LEGACY_TENSOR_TYPE_NAMES: Final = (
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
)


class _LegacyTensorType(type):
    """Metaclass of an old tensor type: a call creates a tensor on the simulated device.

    A tensor is an instance if it is on the device and an instance of `cpu_type`.
    """

    cpu_type: Any
    cuda_name: str
    reporter: WaitReporter

    def __call__(cls, *args: Any, **_kwargs: Any) -> torch.Tensor:
        sized = all(isinstance(size, int) for size in args) or isinstance(args[0], torch.Size)
        if not sized:
            cls.reporter.report_wait(cls.cuda_name, "copy_to_device", fixes.FIX_FOR_CONSTANT)
        with cls.reporter.pass_through():
            return set_location(cls.cpu_type(*args), TensorLocation.DEVICE)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.cpu_type) and is_on_device(instance)


def replace_legacy_types(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Makes `torch.cuda.FloatTensor` and similar types create tensors on the simulated device."""
    for name in _LEGACY_TENSOR_TYPE_NAMES:
        attributes = {"cpu_type": getattr(torch, name), "cuda_name": f"torch.cuda.{name}"}
        patches.replace_attribute(
            torch.cuda, name, _LegacyTensorType(name, (), {**attributes, "reporter": reporter})
        )

    def make_wrapper(original: Any) -> Any:
        def set_default_tensor_type(kind: Any) -> None:
            name = getattr(kind, "cuda_name", kind)
            if not isinstance(name, str) or not name.startswith("torch.cuda."):
                original(kind)
                return
            original(name.replace("torch.cuda.", "torch."))
            torch.set_default_device("cuda")

        return set_default_tensor_type

    patches.wrap_attribute(torch, "set_default_tensor_type", make_wrapper)
