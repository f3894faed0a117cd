"""What PyTorch's recorder can tell besides, and tells only when it is asked.

Events of the garbage collector, of waits for a device, and the overloads of operators. A version of
PyTorch that lacks one of them records the others.
"""

from typing import Any

from torch._C._profiler import _ExperimentalConfig

__all__ = ["switched_on"]


def switched_on(*, frames: bool) -> Any:
    """The recorder's configuration with all that this version of PyTorch has.

    Collections are rows among Python's own, so they come where those of `frames` do.
    """
    wanted: dict[str, Any] = {
        "enable_cuda_sync_events": True,
        "capture_overload_names": True,
        "record_python_gc_info": frames,
    }
    known = _ExperimentalConfig.__init__.__doc__ or ""  # a builtin has no other signature
    return _ExperimentalConfig(**{name: on for name, on in wanted.items() if on and name in known})
