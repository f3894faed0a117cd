"""Makes `torch.cuda` and `torch.accelerator` behave as if the machine had one CUDA device.

Queries return fixed values, calls that wait for the device are reported, and others do nothing.
"""

# ruff: noqa: SLF001 - attributes of this module's own classes

import contextlib
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import torch

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.preflight import fixes
from selftime.capture.preflight.function_mode import SIMULATED_DEVICE
from selftime.capture.preflight.reporter import WaitReporter

if TYPE_CHECKING:
    from typing_extensions import Self

SIMULATED_DEVICE_NAME: Final = "simulated CUDA device (selftime preflight)"
_SIMULATED_DEVICE_MEMORY_BYTES: Final = 80 << 30
"""Memory size that the simulated device reports, in bytes: 80 GiB, so that programs for large
GPUs run."""
_SIMULATED_COMPUTE_CAPABILITY: Final = (9, 0)
_SIMULATED_DEVICE_PROPERTIES: Final = SimpleNamespace(
    name=SIMULATED_DEVICE_NAME,
    major=_SIMULATED_COMPUTE_CAPABILITY[0],
    minor=_SIMULATED_COMPUTE_CAPABILITY[1],
    total_memory=_SIMULATED_DEVICE_MEMORY_BYTES,
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
_RESULT_BY_CUDA_FUNCTION: Final[dict[str, Any]] = {
    "is_available": True,
    "is_initialized": True,
    "is_bf16_supported": True,
    "is_tf32_supported": True,
    "device_count": 1,
    "current_device": 0,
    "get_device_name": SIMULATED_DEVICE_NAME,
    "get_device_capability": _SIMULATED_COMPUTE_CAPABILITY,
    "get_device_properties": _SIMULATED_DEVICE_PROPERTIES,
    "can_device_access_peer": False,
    "get_arch_list": ["sm_90"],
    "get_gencode_flags": "",
    "get_sync_debug_mode": 0,
    "mem_get_info": (_SIMULATED_DEVICE_MEMORY_BYTES, _SIMULATED_DEVICE_MEMORY_BYTES),
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
"""Maps each replaced function of `torch.cuda` to the value that it returns for all arguments."""


def replace_device_functions(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Makes `torch.cuda` and `torch.accelerator` report one simulated device."""
    cuda = torch.cuda
    for name, answer in _RESULT_BY_CUDA_FUNCTION.items():
        if hasattr(cuda, name):
            patches.replace_attribute(cuda, name, _function_that_always_returns(answer))
    patches.replace_attribute(cuda, "get_rng_state", lambda *_: torch.zeros(16, dtype=torch.uint8))
    patches.replace_attribute(
        cuda, "get_rng_state_all", lambda: [torch.zeros(16, dtype=torch.uint8)]
    )
    patches.replace_attribute(cuda, "memory_stats", lambda *_: _EmptyMemoryStatistics())
    patches.replace_attribute(
        cuda, "synchronize", _function_that_reports_wait(reporter, "torch.cuda.synchronize")
    )
    patches.replace_attribute(
        cuda,
        "empty_cache",
        _function_that_reports_wait(reporter, "torch.cuda.empty_cache", fixes.FIX_FOR_EMPTY_CACHE),
    )
    for name in ("device", "device_of", "StreamContext", "stream"):
        patches.replace_attribute(cuda, name, _NullContext)
    _replace_streams_and_events(patches, reporter)
    _replace_graphs(patches, reporter)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        patches.replace_attribute(cuda.nvtx, name, _function_that_always_returns(0))
    patches.replace_attribute(cuda.nvtx, "range", _NullContext)
    patches.replace_attribute(
        torch.backends.cudnn, "is_acceptable", _function_that_always_returns(False)
    )
    _replace_accelerator_functions(patches, reporter)


def _replace_streams_and_events(patches: AttributePatches, reporter: WaitReporter) -> None:
    event = type("Event", (_SimulatedEvent,), {"_reporter": reporter})
    stream = type("Stream", (_SimulatedStream,), {"_reporter": reporter, "_event": event})
    only = stream()
    for owner in (torch.cuda, torch.cuda.streams):
        patches.replace_attribute(owner, "Stream", stream)
        patches.replace_attribute(owner, "Event", event)
    for name in ("current_stream", "default_stream"):
        patches.replace_attribute(torch.cuda, name, _function_that_always_returns(only))


def _replace_graphs(patches: AttributePatches, reporter: WaitReporter) -> None:
    class Graph(_SimulatedGraph):
        def __init__(self, *_args: Any, **_kwargs: Any) -> None:
            reporter.leave_unchecked("a CUDA graph is not captured; its body runs once, eagerly")

    patches.replace_attribute(torch.cuda, "CUDAGraph", Graph)
    patches.replace_attribute(torch.cuda, "graph", _NullContext)

    def make_graphed_callables(callables: Any, *_args: Any, **_kwargs: Any) -> Any:
        Graph()
        return callables

    patches.replace_attribute(torch.cuda, "make_graphed_callables", make_graphed_callables)


def _replace_accelerator_functions(patches: AttributePatches, reporter: WaitReporter) -> None:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:  # before PyTorch 2.6
        return
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
            patches.replace_attribute(accelerator, name, _function_that_always_returns(answer))
    patches.replace_attribute(
        accelerator,
        "synchronize",
        _function_that_reports_wait(reporter, "torch.accelerator.synchronize"),
    )


def _function_that_always_returns(answer: Any) -> Any:
    return lambda *_args, **_kwargs: answer


def _function_that_reports_wait(
    reporter: WaitReporter, op: str, fix: str = fixes.FIX_FOR_SYNCHRONIZE
) -> Any:
    def wait(*_args: Any, **_kwargs: Any) -> None:
        reporter.report_wait(op, "sync", fix)

    return wait


class _EmptyMemoryStatistics(dict[str, int]):
    """Memory statistics of the simulated device; every value is 0."""

    def __missing__(self, _key: str) -> int:
        return 0


class _NullContext(contextlib.ContextDecorator):
    """A context manager that changes nothing, in place of `torch.cuda.device` and `stream`."""

    def __init__(self, *args: Any, **_kwargs: Any) -> None:
        self.idx = 0
        self.stream = args[0] if args else None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_error: object) -> None:
        """Does nothing, since entering the context changed nothing."""


class _SimulatedStream:
    """Replaces `torch.cuda.Stream`; orders nothing, since operators run on the CPU."""

    _reporter: WaitReporter
    _event: Any
    cuda_stream: Final = 0
    stream_id: Final = 0
    device_index: Final = 0
    priority: Final = 0
    device: Final = SIMULATED_DEVICE

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._entered: list[Any] = []

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_error: object) -> None:
        """Does nothing, since entering the context changed nothing."""

    def synchronize(self) -> None:
        self._reporter.report_wait(
            "torch.cuda.Stream.synchronize", "sync", fixes.FIX_FOR_SYNCHRONIZE
        )

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def wait_event(self, _event: Any) -> None:
        """Does nothing: on a GPU the device waits here, not the host."""

    def wait_stream(self, _stream: Any) -> None:
        """Does nothing: on a GPU the device waits here, not the host."""

    def record_event(self, event: Any = None) -> Any:
        event = self._event() if event is None else event
        event.record(self)
        return event


class _SimulatedEvent:
    """Replaces `torch.cuda.Event`; stores the host's time when the event is recorded."""

    _reporter: WaitReporter

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._recorded_s = 0.0

    def record(self, _stream: Any = None) -> None:
        self._recorded_s = time.perf_counter()

    def wait(self, _stream: Any = None) -> None:
        """Does nothing: on a GPU the device waits here, not the host."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        self._reporter.report_wait(
            "torch.cuda.Event.synchronize", "sync", fixes.FIX_FOR_SYNCHRONIZE
        )

    def elapsed_time(self, end: Any) -> float:
        """Returns the time between two recorded events by the host's clock, in ms."""
        return float(end._recorded_s - self._recorded_s) * 1e3


class _SimulatedGraph:
    """Replaces `torch.cuda.CUDAGraph`; captures nothing, so that the graph's code runs once."""

    def capture_begin(self, *_args: Any, **_kwargs: Any) -> None:
        """Does nothing: the operators of the graph run eagerly."""

    def capture_end(self) -> None:
        """Does nothing: the operators of the graph have run eagerly."""

    def replay(self) -> None:
        """Does nothing: results of the single eager run stay in the tensors."""

    def reset(self) -> None:
        """Does nothing: no graph was allocated."""

    def pool(self) -> tuple[int, int]:
        return (0, 0)
