"""What PyTorch's recorder can tell besides, and tells only when it is asked.

Events of the garbage collector, of waits for a device, and the overloads of operators. A version of
PyTorch that lacks one of them records the others.
"""

from typing import Any, Final

from torch._C._profiler import _ExperimentalConfig

COLLECTIONS: Final = "record_python_gc_info"


def switched_on(*, frames: bool) -> Any:
    """The recorder's configuration with all that this version of PyTorch has.

    Collections are rows among Python's own, so they come where those of `frames` do.
    """
    wanted: dict[str, Any] = {
        "enable_cuda_sync_events": True,
        "capture_overload_names": True,
        COLLECTIONS: frames,
    }
    return _ExperimentalConfig(**{name: on for name, on in wanted.items() if on and _has(name)})


def records_collections(config: Any) -> bool | None:
    """Whether a configuration, a user's own too, asks for collections; None if it does not tell.

    It has no attribute for it: the place in its state that the option changes is looked up.
    """
    if config is None or not _has(COLLECTIONS):
        return False
    asking: dict[str, Any] = {COLLECTIONS: True}
    without, asked = _state(_ExperimentalConfig()), _state(_ExperimentalConfig(**asking))
    places = [at for at, told in enumerate(without) if told != asked[at]]
    return bool(_state(config)[places[0]]) if len(places) == 1 else None


def _has(name: str) -> bool:
    return name in (_ExperimentalConfig.__init__.__doc__ or "")  # a builtin has no other signature


def _state(config: Any) -> tuple[Any, ...]:
    state: tuple[Any, ...] = config.__getstate__()
    return state
