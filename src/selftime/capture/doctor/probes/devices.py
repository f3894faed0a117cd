"""Returns the devices that PyTorch finds, or the error that PyTorch raises."""

from typing import Any

import torch


def device_type_and_module() -> tuple[str, Any] | None:
    """Returns (device type, torch's module), such as ("cuda", torch.cuda); None for a CPU build."""
    if torch.version.cuda or torch.version.hip:
        return "cuda", torch.cuda
    if vars(torch.version).get("xpu"):
        return "xpu", torch.xpu
    return None


def list_torch_devices() -> dict[str, Any]:
    found = device_type_and_module()
    if found is None:
        return {"kind": None, "count": 0, "names": [], "error": None}
    kind, module = found
    count, names, error = 0, [], None
    try:
        count = int(module.device_count())
        if not count or not module.is_available():
            module.init()  # raises the reason
        names = [module.get_device_name(index) for index in range(count)]
    except Exception as failed:  # noqa: BLE001 - the error is the result
        error = f"{type(failed).__name__}: {failed}".splitlines()[0]
    return {"kind": kind, "count": count, "names": names, "error": error}
