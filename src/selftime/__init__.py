"""Find out where a PyTorch program spends its time, what to change, and what it will save.

>>> import selftime
>>> trace = selftime.load("trace.json.gz")        # doctest: +SKIP
>>> trace.view("operators", by="shape")           # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from selftime._version import __version__

if TYPE_CHECKING:
    from torch.profiler import ProfilerAction, ProfilerActivity, record_function, schedule

    from selftime.advice.advise import advise
    from selftime.capture import tensorboard_trace_handler
    from selftime.frameworks.loop import watch
    from selftime.ingest.load import load
    from selftime.session import profile
    from selftime.trace import Job, Trace

__all__ = [
    "Job",
    "ProfilerAction",
    "ProfilerActivity",
    "Trace",
    "__version__",
    "advise",
    "load",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
    "watch",
]

_HOMES = {
    "Job": "selftime.trace",
    "ProfilerAction": "selftime.capture",
    "ProfilerActivity": "selftime.capture",
    "Trace": "selftime.trace",
    "advise": "selftime.advice",
    "load": "selftime.ingest.load",
    "profile": "selftime.session",
    "record_function": "selftime.capture",
    "schedule": "selftime.capture",
    "tensorboard_trace_handler": "selftime.capture",
    "watch": "selftime.frameworks.loop",
}

_EXTENSION = ("load_ipython_extension", "unload_ipython_extension")
"""What `%load_ext selftime` asks for."""


def __getattr__(name: str) -> Any:
    """Import on first use: `import selftime` alone loads neither torch nor polars."""
    if name in _EXTENSION:
        return getattr(import_module("selftime.frameworks.ipython"), name)
    if name not in _HOMES:
        raise AttributeError(f"module 'selftime' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
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
    return sorted(__all__)
