"""Reads the version of PyTorch and the platforms for which it was built."""

from typing import Any


def read_torch_build() -> dict[str, Any]:
    import torch  # noqa: PLC0415 - whether this works is tested

    built_for: dict[str, Any] = vars(torch.version)
    autograd: Any = torch.autograd
    activities: Any = torch.profiler.supported_activities
    return {
        "version": str(torch.__version__),
        "file": torch.__file__,
        "cuda": built_for.get("cuda"),
        "hip": built_for.get("hip"),
        "xpu": built_for.get("xpu"),
        "debug": bool(built_for.get("debug")),
        "kineto": bool(autograd.kineto_available()),
        "activities": sorted(found.name for found in activities()),
    }
