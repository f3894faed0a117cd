"""Recording: the only package that imports torch, and only once one of its names is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.profiler import ProfilerAction, ProfilerActivity, record_function, schedule

    from selftime.capture.handlers import tensorboard_trace_handler
    from selftime.capture.profile import Profile
    from selftime.capture.program.run import RunOptions, RunResult, run_program

__all__ = [
    "Profile",
    "ProfilerAction",
    "ProfilerActivity",
    "RunOptions",
    "RunResult",
    "record_function",
    "run_program",
    "schedule",
    "tensorboard_trace_handler",
]

_HOMES = {
    "Profile": "selftime.capture.profile",
    "RunOptions": "selftime.capture.program.run",
    "RunResult": "selftime.capture.program.run",
    "run_program": "selftime.capture.program.run",
    "tensorboard_trace_handler": "selftime.capture.handlers",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_HOMES.get(name, "torch.profiler"))
    value = globals()[name] = getattr(module, name)
    return value
