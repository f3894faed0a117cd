"""Is PyTorch there, and what was it built for?"""

from typing import Any


def answer() -> dict[str, Any]:
    import torch  # noqa: PLC0415 - whether this works is the question

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
