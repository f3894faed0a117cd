"""How PyTorch is set: what a trace does not show and its times depend on."""

import ctypes
import os
import platform
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

_WORDS: Final = 8
"""`fenv_t` of glibc on x86-64: 28 bytes of the x87 unit, then MXCSR."""
_MXCSR: Final = 7
_OPERAND: Final = 1 << 1
"""An operand was denormal."""
_TREATED_AS_ZERO: Final = 1 << 6
_FLUSHED: Final = 1 << 15
_ENVIRONMENT: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "OMP_PROC_BIND",
    "KMP_BLOCKTIME",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "LOCAL_WORLD_SIZE",
    "CUDA_LAUNCH_BLOCKING",
    "AMD_SERIALIZE_KERNEL",
    "HIP_LAUNCH_BLOCKING",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
)
"""Variables that change how fast a program runs."""


def compiler_facts() -> dict[str, Any] | None:
    """Graphs compiled, and how often device graphs were asked for and not used; None if unused."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if not isinstance(counters, Mapping):
        return None
    graphs = _count(counters, "stats", "unique_graphs")
    if not graphs:
        return None
    return {
        "graphs": graphs,
        "cudagraph_skips": _count(counters, "inductor", "cudagraph_skips"),
    }


def _count(counters: Mapping[Any, Any], kind: str, name: str) -> int:
    found = counters.get(kind)
    count = found.get(name) if isinstance(found, Mapping) else None
    return count if isinstance(count, int) else 0


class Watch:
    """Looks for denormal operands on the thread that begins it."""

    def __init__(self) -> None:
        self._thread: int | None = None

    def begin(self) -> None:
        """Forget the denormal operands that this thread has met."""
        self._thread = None
        environment = _read()
        if environment is not None:
            environment[_MXCSR] &= ~_OPERAND
            _library().fesetenv(environment)
            self._thread = threading.get_ident()

    def met(self) -> bool | None:
        """Whether the thread met one since; None where untold, and on another thread."""
        environment = _read()
        if environment is None or self._thread != threading.get_ident():
            return None
        return bool(environment[_MXCSR] & _OPERAND)


def are_flushed() -> bool | None:
    """Whether denormal operands and results of this thread are zeros; None where untold."""
    environment = _read()
    if environment is None:
        return None
    both = _TREATED_AS_ZERO | _FLUSHED
    return bool(environment[_MXCSR] & both == both)


def _read() -> Any:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    if platform.libc_ver()[0] != "glibc":
        return None
    environment = (ctypes.c_uint32 * _WORDS)()
    return None if _library().fegetenv(environment) else environment


def _library() -> Any:
    """The C library's functions on the floating-point environment."""
    return ctypes.CDLL("libm.so.6")


def settings() -> dict[str, Any]:
    """The settings of this moment; what this version of PyTorch does not tell is None.

    Asking sets nothing up: a device that the program has not touched is not asked.
    """
    backends = torch.backends
    return {
        "threads": _told(torch.get_num_threads),
        "interop_threads": _told(torch.get_num_interop_threads),
        "environment": {name: os.environ.get(name) for name in _ENVIRONMENT},
        "cpu_capability": _cpu_capability(),
        "cpu_bfloat16": _told(_cpu_bfloat16),
        "flush_denormals": are_flushed(),
        "cudnn_benchmark": _told(lambda: backends.cudnn.benchmark),
        "cudnn_deterministic": _told(lambda: backends.cudnn.deterministic),
        "cudnn_allow_tf32": _told(lambda: backends.cudnn.allow_tf32),
        "cuda_matmul_allow_tf32": _told(lambda: backends.cuda.matmul.allow_tf32),
        "float32_matmul_precision": _told(torch.get_float32_matmul_precision),
        "sync_debug_mode": _sync_debug_mode(),
        "anomaly_mode": _told(torch.is_anomaly_enabled),
        "deterministic_algorithms": _told(torch.are_deterministic_algorithms_enabled),
        "autocast": {device: _autocast(device) for device in ("cpu", "cuda")},
    }


def _told(ask: Callable[[], Any]) -> Any:
    """The answer, if this build of PyTorch has one."""
    try:
        with warnings.catch_warnings():  # of names that PyTorch is about to change
            warnings.simplefilter("ignore")
            return ask()
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return None


def _cpu_capability() -> Any:
    """The instructions that PyTorch's own loops were chosen for."""
    return _told(lambda: str(torch.backends.cpu.get_cpu_capability()))


def _cpu_bfloat16() -> str | None:
    """The instructions that this processor multiplies bfloat16 with; "" if it has none."""
    if torch.cpu._is_amx_tile_supported():  # noqa: SLF001 - PyTorch tells it nowhere else
        return "AMX"
    return "AVX512_BF16" if torch.cpu._is_avx512_bf16_supported() else ""  # noqa: SLF001 - likewise


def _sync_debug_mode() -> int | None:
    """0 off, 1 warn, 2 error; None where no CUDA device is in use."""
    cuda: Any = torch.cuda
    if not (cuda.is_available() and cuda.is_initialized()):
        return None
    mode = _told(cuda.get_sync_debug_mode)
    return mode if isinstance(mode, int) else None


def _autocast(device: str) -> str | None:
    """The dtype of autocast where it is on at this moment, "" where it is off."""
    enabled = _told(lambda: torch.is_autocast_enabled(device))
    if enabled is None:
        return None
    return str(torch.get_autocast_dtype(device)).removeprefix("torch.") if enabled else ""
