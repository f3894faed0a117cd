"""Reads the settings of PyTorch that affect speed and that a trace does not contain."""

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from selftime.capture.profiler.user_warnings import take_warnings

_FENV_T_SIZE_IN_32_BIT_WORDS: Final = 8
"""Size, in 32-bit words, of glibc's `fenv_t` on x86-64: 28 bytes of x87 state, then the MXCSR
register."""
_INDEX_OF_MXCSR_WORD_IN_FENV_T: Final = 7
_MXCSR_DENORMAL_OPERAND_FLAG: Final = 1 << 1
"""Bit of the MXCSR register that the CPU sets when an operand is a denormal number."""
_MXCSR_UNDERFLOW_FLAG: Final = 1 << 4
"""Bit of the MXCSR register that the CPU sets when a result is too small for a normal number."""
_MXCSR_DENORMALS_ARE_ZERO_FLAG: Final = 1 << 6
_MXCSR_FLUSH_TO_ZERO_FLAG: Final = 1 << 15
_PERFORMANCE_ENVIRONMENT_VARIABLES: Final = (
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
    "PYTORCH_NO_HIP_MEMORY_CACHING",
)
"""Environment variables that change how fast a program runs."""


def torch_compile_facts() -> dict[str, Any] | None:
    """Returns counts of torch.compile's graphs and skipped CUDA graphs; None without any graph."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if not isinstance(counters, Mapping):
        return None
    graphs = _dynamo_counter_or_zero(counters, "stats", "unique_graphs")
    if not graphs:
        return None
    return {
        "graphs": graphs,
        "cudagraph_skips": _dynamo_counter_or_zero(counters, "inductor", "cudagraph_skips"),
    }


def _dynamo_counter_or_zero(counters: Mapping[Any, Any], kind: str, name: str) -> int:
    found = counters.get(kind)
    count = found.get(name) if isinstance(found, Mapping) else None
    return count if isinstance(count, int) else 0


class DenormalDetector:
    """Detects whether operators of the current thread meet denormal floating-point numbers.

    Results count as well as operands: libraries such as MKL restore the register's flags around
    their functions, so that `sqrt` of denormal numbers leaves no trace of its operands, while the
    operator that made these numbers does.
    """

    def __init__(self) -> None:
        self._thread: int | None = None

    def start_watching(self) -> None:
        """Clears the CPU flags that say that this thread has met a denormal number."""
        self._thread = None
        fenv = _read_floating_point_environment()
        if fenv is not None:
            flags = _MXCSR_DENORMAL_OPERAND_FLAG | _MXCSR_UNDERFLOW_FLAG
            fenv[_INDEX_OF_MXCSR_WORD_IN_FENV_T] &= ~flags
            _c_library_with_fenv_functions().fesetenv(fenv)
            self._thread = threading.get_ident()

    def has_detected_denormals(self) -> bool | None:
        """Returns whether this thread met denormal numbers since `start_watching`, if known.

        Results that are flushed to zero are none.
        """
        fenv = _read_floating_point_environment()
        if fenv is None or self._thread != threading.get_ident():
            return None
        mxcsr = fenv[_INDEX_OF_MXCSR_WORD_IN_FENV_T]
        has_small_result = mxcsr & _MXCSR_UNDERFLOW_FLAG and not mxcsr & _MXCSR_FLUSH_TO_ZERO_FLAG
        return bool(mxcsr & _MXCSR_DENORMAL_OPERAND_FLAG or has_small_result)


def flushes_denormals() -> bool | None:
    """Returns whether this thread treats denormal numbers as zero; None if unknown."""
    fenv = _read_floating_point_environment()
    if fenv is None:
        return None
    both = _MXCSR_DENORMALS_ARE_ZERO_FLAG | _MXCSR_FLUSH_TO_ZERO_FLAG
    return bool(fenv[_INDEX_OF_MXCSR_WORD_IN_FENV_T] & both == both)


def _read_floating_point_environment() -> Any:
    """Returns this thread's floating-point environment; None except with glibc on x86-64."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    if platform.libc_ver()[0] != "glibc":
        return None
    fenv = (ctypes.c_uint32 * _FENV_T_SIZE_IN_32_BIT_WORDS)()
    return None if _c_library_with_fenv_functions().fegetenv(fenv) else fenv


def _c_library_with_fenv_functions() -> Any:
    """Returns the C library with the functions `fegetenv` and `fesetenv`."""
    return ctypes.CDLL("libm.so.6")


def pytorch_settings() -> dict[str, Any]:
    """Returns {name: value} of PyTorch's settings; None for settings that this version lacks.

    Reading them initializes no device.
    """
    backends = torch.backends
    return {
        "threads": _result_or_none_if_unsupported(torch.get_num_threads),
        "interop_threads": _result_or_none_if_unsupported(torch.get_num_interop_threads),
        "environment": {name: os.environ.get(name) for name in _PERFORMANCE_ENVIRONMENT_VARIABLES},
        "cpu_capability": _cpu_kernel_instruction_set(),
        "cpu_bfloat16": bfloat16_instruction_set(),
        "flush_denormals": flushes_denormals(),
        "cudnn_benchmark": _result_or_none_if_unsupported(lambda: backends.cudnn.benchmark),
        "cudnn_deterministic": _result_or_none_if_unsupported(lambda: backends.cudnn.deterministic),
        "cudnn_allow_tf32": _result_or_none_if_unsupported(lambda: backends.cudnn.allow_tf32),
        "cuda_matmul_allow_tf32": _result_or_none_if_unsupported(
            lambda: backends.cuda.matmul.allow_tf32
        ),
        "float32_matmul_precision": _result_or_none_if_unsupported(
            torch.get_float32_matmul_precision
        ),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "sync_debug_mode": _cuda_sync_debug_mode(),
        "anomaly_mode": _result_or_none_if_unsupported(torch.is_anomaly_enabled),
        "deterministic_algorithms": _result_or_none_if_unsupported(
            torch.are_deterministic_algorithms_enabled
        ),
        "autocast": {device: _autocast_dtype(device) for device in ("cpu", "cuda")},
    }


def _result_or_none_if_unsupported(ask: Callable[[], Any]) -> Any:
    """Returns `ask()`; None if this build of PyTorch does not support the call."""
    try:
        with take_warnings():  # PyTorch deprecates some of the names
            return ask()
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return None


def _cpu_kernel_instruction_set() -> Any:
    """Returns the CPU instruction set, such as AVX2, for which PyTorch runs its CPU kernels."""
    return _result_or_none_if_unsupported(lambda: str(torch.backends.cpu.get_cpu_capability()))


def bfloat16_instruction_set() -> str | None:
    """Returns the CPU instruction set that multiplies bfloat16; empty if the CPU has none.

    None if this PyTorch cannot tell, as 2.4.
    """
    found: str | None = _result_or_none_if_unsupported(_bfloat16_instruction_set)
    return found


def _bfloat16_instruction_set() -> str:
    if torch.cpu._is_amx_tile_supported():  # noqa: SLF001 - PyTorch has no public function for it
        return "AMX"
    return "AVX512_BF16" if torch.cpu._is_avx512_bf16_supported() else ""  # noqa: SLF001 - likewise


def _cuda_sync_debug_mode() -> int | None:
    """Returns CUDA's sync debug mode, 0 (off) to 2 (error); None if CUDA is not in use."""
    cuda: Any = torch.cuda
    if not (cuda.is_available() and cuda.is_initialized()):
        return None
    mode = _result_or_none_if_unsupported(cuda.get_sync_debug_mode)
    return mode if isinstance(mode, int) else None


def _autocast_dtype(device: str) -> str | None:
    """Returns the dtype of autocast on a device type, "" if autocast is off, None if unknown."""
    enabled = _result_or_none_if_unsupported(lambda: torch.is_autocast_enabled(device))
    if enabled is None:
        return None
    return str(torch.get_autocast_dtype(device)).removeprefix("torch.") if enabled else ""
