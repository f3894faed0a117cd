"""Read the ranks of a job in parallel, with local processes or on Ray, and merge the results.

engine      the interface of engines, which map a task over files
local, ray  the engines
collect     runs a task on each rank, and merges the results
advice      advice for a whole job

>>> from selftime.scale import Ray, view                            # doctest: +SKIP
>>> view("s3://bucket/run/", "stragglers", engine=Ray())            # doctest: +SKIP

A name is imported on first use: a reading process needs only its engine.
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
