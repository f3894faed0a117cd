"""Finds out where a PyTorch program spends its time, what to change, and what it will save.

>>> import selftime
>>> trace = selftime.load("trace.json.gz")        # doctest: +SKIP
>>> trace.view("operators", by="shape")           # doctest: +SKIP
"""

from importlib import import_module
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from selftime._version import __version__

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

    from selftime.advice.advise import advise
    from selftime.advice.what_if import what_if
    from selftime.capture import tensorboard_trace_handler
    from selftime.frameworks.watched_loop import watch
    from selftime.ingest.load import load
    from selftime.session import profile
    from selftime.trace import Job, Trace

LOAD_START_NS = perf_counter_ns()
"""Value of `time.perf_counter_ns()` when Python began to import selftime."""

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "Job",
    "ProfilerAction",
    "ProfilerActivity",
    "Trace",
    "__version__",
    "advise",
    "itt",
    "kineto_available",
    "load",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "watch",
    "what_if",
]

_MODULE_OF_PUBLIC_NAME = {
    "DeviceType": "selftime.capture",
    "ExecutionTraceObserver": "selftime.capture",
    "Job": "selftime.trace",
    "ProfilerAction": "selftime.capture",
    "ProfilerActivity": "selftime.capture",
    "Trace": "selftime.trace",
    "advise": "selftime.advice",
    "itt": "selftime.capture",
    "kineto_available": "selftime.capture",
    "load": "selftime.ingest.load",
    "profile": "selftime.session",
    "record_function": "selftime.capture",
    "schedule": "selftime.capture",
    "supported_activities": "selftime.capture",
    "tensorboard_trace_handler": "selftime.capture",
    "watch": "selftime.frameworks.watched_loop",
    "what_if": "selftime.advice.what_if",
}
"""Maps each public name to the module that defines it."""

_IPYTHON_EXTENSION_FUNCTIONS = ("load_ipython_extension", "unload_ipython_extension")
"""Functions that `%load_ext selftime` and `%unload_ext selftime` call."""


def __getattr__(name: str) -> Any:
    """Imports a public name on first use, so that `import selftime` loads no torch or polars."""
    if name in _IPYTHON_EXTENSION_FUNCTIONS:
        return getattr(import_module("selftime.frameworks.ipython"), name)
    if name not in _MODULE_OF_PUBLIC_NAME:
        raise AttributeError(f"module 'selftime' has no attribute {name!r}")
    try:
        value = getattr(import_module(_MODULE_OF_PUBLIC_NAME[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        from selftime.errors import MissingDependency  # noqa: PLC0415 - only where it is raised

        raise MissingDependency(
            f"`selftime.{name}` needs PyTorch, which is not installed; install torch first"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
