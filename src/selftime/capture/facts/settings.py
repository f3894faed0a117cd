"""How PyTorch is set: what a trace does not show and its times depend on."""

import os
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch

from selftime.capture.facts import denormals

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
        "flush_denormals": denormals.are_flushed(),
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
