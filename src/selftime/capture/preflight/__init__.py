"""Which lines would make the host wait for a GPU, found on a machine without one.

`with preflight() as found:` runs its block with tensors that pretend to be on a CUDA device: their
data stay on the CPU, so that the program's own values decide where it goes. `found.sites` are the
places where the host would wait.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftime.capture.preflight.fake_device import preflight
    from selftime.capture.preflight.found import Found, NotChecked, Site

__all__ = ["Found", "NotChecked", "Site", "preflight"]

_HOMES = {
    "Found": "selftime.capture.preflight.found",
    "NotChecked": "selftime.capture.preflight.found",
    "Site": "selftime.capture.preflight.found",
    "preflight": "selftime.capture.preflight.fake_device",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
