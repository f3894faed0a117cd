"""What leaves Python runs eagerly here, and is said not to be checked."""

# ruff: noqa: SLF001 - torch has no public name for what keeps its modes away

from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from selftime.capture.patches import Patches
from selftime.capture.preflight.watch import Watch

_COMPILED = "torch.compile is not applied: the region ran eagerly, as written"
_SPAWNED = "processes that are spawned do not pretend: let the main process do the work"
_GLOO = "processes talk by gloo, on the CPU: what NCCL waits for is not known"
_SCRIPTED = "TorchScript does not ask us for a device; its operators alone are looked at"


def install(patches: Patches, watch: Watch) -> None:
    """Let `torch.compile` hand back what it is given; note what is scripted or traced."""

    def compile(model: Any = None, **_options: Any) -> Any:  # noqa: A001 - torch's name
        watch.leave_unchecked(_COMPILED)
        return (lambda function: function) if model is None else model

    patches.put(torch, "compile", compile)
    for name in ("spawn", "start_processes"):
        patches.wrap(torch.multiprocessing, name, lambda original: _started(original, watch))
    if torch.distributed.is_available():
        patches.wrap(torch.distributed, "init_process_group", lambda o: _without_nccl(o, watch))
    for name in ("script", "trace"):
        patches.wrap(torch.jit, name, lambda original: _noted(original, watch))


def _started(original: Any, watch: Watch) -> Any:
    def started(*args: Any, **kwargs: Any) -> Any:
        watch.leave_unchecked(_SPAWNED)
        return original(*args, **kwargs)

    return started


def _without_nccl(original: Any, watch: Watch) -> Any:
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        watch.leave_unchecked(_GLOO)
        if backend is None or "nccl" in backend:
            backend = "gloo"
        kwargs.pop("device_id", None)
        return original(backend, *args, **kwargs)

    return init_process_group


def _noted(original: Any, watch: Watch) -> Any:
    def noted(*args: Any, **kwargs: Any) -> Any:
        watch.leave_unchecked(_SCRIPTED)
        # It runs the program to record it, and no mode may look on.
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return original(*args, **kwargs)

    return noted
