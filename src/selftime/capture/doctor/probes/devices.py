"""Which devices does PyTorch find, and if none, why?"""

from typing import Any

import torch


def backend() -> tuple[str, Any] | None:
    """Its kind and torch's module for it; None if the build is for the CPU alone."""
    if torch.version.cuda or torch.version.hip:
        return "cuda", torch.cuda
    if vars(torch.version).get("xpu"):
        return "xpu", torch.xpu
    return None


def answer() -> dict[str, Any]:
    found = backend()
    if found is None:
        return {"kind": None, "count": 0, "names": [], "error": None}
    kind, module = found
    count, names, error = 0, [], None
    try:
        count = int(module.device_count())
        if not count or not module.is_available():
            module.init()  # it says why
        names = [module.get_device_name(index) for index in range(count)]
    except Exception as failed:  # noqa: BLE001 - it is what was found out
        error = f"{type(failed).__name__}: {failed}".splitlines()[0]
    return {"kind": kind, "count": count, "names": names, "error": error}
