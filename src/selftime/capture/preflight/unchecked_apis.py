"""Reports uses of torch functions that cannot be simulated, and replaces some of them.

These are `torch.compile`, TorchScript, spawned processes, and NCCL.
"""

# ruff: noqa: SLF001 - torch has no public name to disable its modes

from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.preflight.reporter import WaitReporter

_TORCH_COMPILE_NOT_APPLIED_MESSAGE = (
    "torch.compile is not applied: the region ran eagerly, as written"
)
_SPAWNED_PROCESS_MESSAGE = (
    "spawned processes have no simulated device: let the main process do the work"
)
_GLOO_INSTEAD_OF_NCCL_MESSAGE = "collectives use gloo on the CPU: the waits of NCCL are not known"
_TORCHSCRIPT_MESSAGE = (
    "TorchScript does not use the simulated device; only its operators are checked"
)


def replace_unchecked_apis(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Disables `torch.compile`; reports uses of it, of TorchScript, spawned processes and NCCL."""

    def compile(model: Any = None, **_options: Any) -> Any:  # noqa: A001 - torch's name
        reporter.leave_unchecked(_TORCH_COMPILE_NOT_APPLIED_MESSAGE)
        return (lambda function: function) if model is None else model

    patches.replace_attribute(torch, "compile", compile)
    for name in ("spawn", "start_processes"):
        patches.wrap_attribute(
            torch.multiprocessing, name, lambda original: _report_spawn(original, reporter)
        )
    if torch.distributed.is_available():
        patches.wrap_attribute(
            torch.distributed, "init_process_group", lambda o: _use_gloo_for_nccl(o, reporter)
        )
    for name in ("script", "trace"):
        patches.wrap_attribute(
            torch.jit, name, lambda original: _report_scripting(original, reporter)
        )


def _report_spawn(original: Any, reporter: WaitReporter) -> Any:
    def report_and_spawn(*args: Any, **kwargs: Any) -> Any:
        reporter.leave_unchecked(_SPAWNED_PROCESS_MESSAGE)
        return original(*args, **kwargs)

    return report_and_spawn


def _use_gloo_for_nccl(original: Any, reporter: WaitReporter) -> Any:
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        reporter.leave_unchecked(_GLOO_INSTEAD_OF_NCCL_MESSAGE)
        if backend is None or "nccl" in backend:
            backend = "gloo"
        kwargs.pop("device_id", None)
        return original(backend, *args, **kwargs)

    return init_process_group


def _report_scripting(original: Any, reporter: WaitReporter) -> Any:
    def report_and_script(*args: Any, **kwargs: Any) -> Any:
        reporter.leave_unchecked(_TORCHSCRIPT_MESSAGE)
        # TorchScript runs the program to trace it, which must not happen under a mode.
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return original(*args, **kwargs)

    return report_and_script
