"""A job's ranks, read one by one by local processes or on Ray, and put together.

    engine      what maps a task over files, and what all engines have in common
    local, ray  the engines
    collect     what is asked of each rank, and put together

>>> from selftime.scale import Ray, view                            # doctest: +SKIP
>>> view("s3://bucket/run/", "stragglers", engine=Ray())            # doctest: +SKIP

A name is imported when it is first used: a process that reads needs no more than its engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftime.scale.collect import survey, view
    from selftime.scale.engine import Engine
    from selftime.scale.local import Local
    from selftime.scale.ray import Ray

__all__ = ["Engine", "Local", "Ray", "survey", "view"]

_HOMES = {
    "Engine": "selftime.scale.engine",
    "Local": "selftime.scale.local",
    "Ray": "selftime.scale.ray",
    "survey": "selftime.scale.collect",
    "view": "selftime.scale.collect",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'selftime.scale' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
