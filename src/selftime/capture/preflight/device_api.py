"""`torch.cuda` as a program finds it on a machine with one device, without one.

Questions get a plain answer; what waits for the device is reported; the rest does nothing.
"""

# ruff: noqa: SLF001 - torch has no public name for what a pretended device must answer

import contextlib
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import torch

from selftime.capture.patches import Patches
from selftime.capture.preflight import fixes
from selftime.capture.preflight.calls import DEVICE
from selftime.capture.preflight.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Self

NAME: Final = "pretended CUDA device (selftime preflight)"
_MEMORY: Final = 80 << 30
"""Bytes of memory that the device claims: as the large ones of its time, so that programs fit."""
_CAPABILITY: Final = (9, 0)
_PROPERTIES: Final = SimpleNamespace(
    name=NAME,
    major=_CAPABILITY[0],
    minor=_CAPABILITY[1],
    total_memory=_MEMORY,
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    warp_size=32,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=50 << 20,
    is_integrated=0,
    is_multi_gpu_board=0,
    gcnArchName="",
    uuid="00000000-0000-0000-0000-000000000000",
)
_ANSWERS: Final[dict[str, Any]] = {
    "is_available": True,
    "is_initialized": True,
    "is_bf16_supported": True,
    "is_tf32_supported": True,
    "device_count": 1,
    "current_device": 0,
    "get_device_name": NAME,
    "get_device_capability": _CAPABILITY,
    "get_device_properties": _PROPERTIES,
    "can_device_access_peer": False,
    "get_arch_list": ["sm_90"],
    "get_gencode_flags": "",
    "get_sync_debug_mode": 0,
    "mem_get_info": (_MEMORY, _MEMORY),
    "utilization": 0,
    "memory_usage": 0,
    "temperature": 0,
    "power_draw": 0,
    "clock_rate": 0,
    "is_current_stream_capturing": False,
    "graph_pool_handle": (0, 0),
    "get_allocator_backend": "native",
    "current_blas_handle": 0,
    "memory_snapshot": [],
    "memory_summary": "",
    "initial_seed": 0,
    **dict.fromkeys(
        (
            "memory_allocated",
            "max_memory_allocated",
            "memory_reserved",
            "max_memory_reserved",
            "memory_cached",
            "max_memory_cached",
            "device_memory_used",
        ),
        0,
    ),
    **dict.fromkeys(
        (
            "init",
            "_lazy_init",
            "set_device",
            "set_stream",
            "ipc_collect",
            "manual_seed",
            "manual_seed_all",
            "seed",
            "seed_all",
            "set_rng_state",
            "set_rng_state_all",
            "set_sync_debug_mode",
            "set_per_process_memory_fraction",
            "reset_peak_memory_stats",
            "reset_max_memory_allocated",
            "reset_max_memory_cached",
            "reset_accumulated_memory_stats",
            "caching_allocator_enable",
            "_sleep",
        )
    ),
}
"""What a function of `torch.cuda` returns, whatever it is asked."""


def install(patches: Patches, watch: Watch) -> None:
    """Let `torch.cuda` and `torch.accelerator` speak of one device."""
    cuda = torch.cuda
    for name, answer in _ANSWERS.items():
        if hasattr(cuda, name):
            patches.put(cuda, name, _always(answer))
    patches.put(cuda, "get_rng_state", lambda *_: torch.zeros(16, dtype=torch.uint8))
    patches.put(cuda, "get_rng_state_all", lambda: [torch.zeros(16, dtype=torch.uint8)])
    patches.put(cuda, "memory_stats", lambda *_: _Zeros())
    patches.put(cuda, "synchronize", _waiting(watch, "torch.cuda.synchronize"))
    patches.put(cuda, "empty_cache", _waiting(watch, "torch.cuda.empty_cache", fixes.CUDA_FREE))
    for name in ("device", "device_of", "StreamContext", "stream"):
        patches.put(cuda, name, _Context)
    _install_streams(patches, watch)
    _install_graphs(patches, watch)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        patches.put(cuda.nvtx, name, _always(0))
    patches.put(cuda.nvtx, "range", _Context)
    patches.put(torch.backends.cudnn, "is_acceptable", _always(False))
    _install_accelerator(patches, watch)


def _install_streams(patches: Patches, watch: Watch) -> None:
    event = type("Event", (_Event,), {"_watch": watch})
    stream = type("Stream", (_Stream,), {"_watch": watch, "_event": event})
    only = stream()
    for owner in (torch.cuda, torch.cuda.streams):
        patches.put(owner, "Stream", stream)
        patches.put(owner, "Event", event)
    for name in ("current_stream", "default_stream"):
        patches.put(torch.cuda, name, _always(only))


def _install_graphs(patches: Patches, watch: Watch) -> None:
    class Graph(_Graph):
        def __init__(self, *_args: Any, **_kwargs: Any) -> None:
            watch.leave_unchecked("a CUDA graph is not recorded here; its body runs once as it is")

    patches.put(torch.cuda, "CUDAGraph", Graph)
    patches.put(torch.cuda, "graph", _Context)

    def make_graphed_callables(callables: Any, *_args: Any, **_kwargs: Any) -> Any:
        Graph()
        return callables

    patches.put(torch.cuda, "make_graphed_callables", make_graphed_callables)


def _install_accelerator(patches: Patches, watch: Watch) -> None:
    accelerator = torch.accelerator
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_accelerator": torch.device("cuda"),
        "current_device_index": 0,
        "current_device_idx": 0,
        "set_device_index": None,
        "set_device_idx": None,
        "set_stream": None,
        "current_stream": torch.cuda.current_stream(),
    }
    for name, answer in answers.items():
        if hasattr(accelerator, name):
            patches.put(accelerator, name, _always(answer))
    patches.put(accelerator, "synchronize", _waiting(watch, "torch.accelerator.synchronize"))


def _always(answer: Any) -> Any:
    return lambda *_args, **_kwargs: answer


def _waiting(watch: Watch, op: str, fix: str = fixes.SYNCHRONIZE) -> Any:
    def wait(*_args: Any, **_kwargs: Any) -> None:
        watch.report(op, "sync", fix)

    return wait


class _Zeros(dict[str, int]):
    """Statistics of an allocator that holds nothing."""

    def __missing__(self, _key: str) -> int:
        return 0


class _Context(contextlib.ContextDecorator):
    """A block on a device or stream, of which there is one."""

    def __init__(self, *args: Any, **_kwargs: Any) -> None:
        self.idx = 0
        self.stream = args[0] if args else None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing was changed."""


class _Stream:
    """Work in order: there is nothing to order here."""

    _watch: Watch
    _event: Any
    cuda_stream: Final = 0
    stream_id: Final = 0
    device_index: Final = 0
    priority: Final = 0
    device: Final = DEVICE

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._entered: list[Any] = []

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing was changed."""

    def synchronize(self) -> None:
        self._watch.report("torch.cuda.Stream.synchronize", "sync", fixes.SYNCHRONIZE)

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def wait_event(self, _event: Any) -> None:
        """The device waits, the host does not."""

    def wait_stream(self, _stream: Any) -> None:
        """The device waits, the host does not."""

    def record_event(self, event: Any = None) -> Any:
        event = self._event() if event is None else event
        event.record(self)
        return event


class _Event:
    """A mark in the work; it knows the host's time at which it was set."""

    _watch: Watch

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._at = 0.0

    def record(self, _stream: Any = None) -> None:
        self._at = time.perf_counter()

    def wait(self, _stream: Any = None) -> None:
        """The device waits, the host does not."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        self._watch.report("torch.cuda.Event.synchronize", "sync", fixes.SYNCHRONIZE)

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds between two marks, by the host's clock."""
        return float(end._at - self._at) * 1e3


class _Graph:
    """Work that would be recorded and replayed."""

    def capture_begin(self, *_args: Any, **_kwargs: Any) -> None:
        """The body runs as it is."""

    def capture_end(self) -> None:
        """The body ran as it is."""

    def replay(self) -> None:
        """Its results are those of the one run."""

    def reset(self) -> None:
        """There is nothing to give back."""

    def pool(self) -> tuple[int, int]:
        return (0, 0)
