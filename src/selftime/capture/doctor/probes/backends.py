"""The device that this build of PyTorch was made for."""

from typing import Any

import torch


def backend() -> tuple[str, Any] | None:
    """Its kind and torch's module for it; None if the build is for the CPU alone."""
    if torch.version.cuda or torch.version.hip:
        return "cuda", torch.cuda
    if vars(torch.version).get("xpu"):
        return "xpu", torch.xpu
    return None
