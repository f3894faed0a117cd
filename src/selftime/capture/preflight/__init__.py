"""Finds, on a machine without a GPU, the source lines at which the host would wait for a GPU.

`with preflight() as found:` runs its block with a simulated CUDA device. The data of its tensors
stay on the CPU, so the program computes its real values and takes its real branches. `found.sites`
are the places where the host would wait.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftime.capture.preflight.fake_device import preflight
    from selftime.capture.preflight.results import NotChecked, PreflightWaits, PreflightWaitSite

__all__ = ["NotChecked", "PreflightWaitSite", "PreflightWaits", "preflight"]

_MODULE_OF_PUBLIC_NAME = {
    "PreflightWaits": "selftime.capture.preflight.results",
    "NotChecked": "selftime.capture.preflight.results",
    "PreflightWaitSite": "selftime.capture.preflight.results",
    "preflight": "selftime.capture.preflight.fake_device",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF_PUBLIC_NAME[name]), name)
    return value
