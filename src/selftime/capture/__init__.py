"""Records PyTorch programs; torch is imported when a name of this package is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.profiler import (
        DeviceType,
        ExecutionTraceObserver,
        ProfilerAction,
        ProfilerActivity,
        itt,
        kineto_available,
        record_function,
        schedule,
        supported_activities,
    )

    from selftime.capture.profiler.profile import Profile
    from selftime.capture.program.run import RunOptions, RunResult, run_program
    from selftime.capture.trace_file.trace_handlers import tensorboard_trace_handler

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "Profile",
    "ProfilerAction",
    "ProfilerActivity",
    "RunOptions",
    "RunResult",
    "itt",
    "kineto_available",
    "record_function",
    "run_program",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_MODULE_OF_PUBLIC_NAME = {
    "Profile": "selftime.capture.profiler.profile",
    "RunOptions": "selftime.capture.program.run",
    "RunResult": "selftime.capture.program.run",
    "run_program": "selftime.capture.program.run",
    "tensorboard_trace_handler": "selftime.capture.trace_file.trace_handlers",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_MODULE_OF_PUBLIC_NAME.get(name, "torch.profiler"))
    value = globals()[name] = getattr(module, name)
    return value
