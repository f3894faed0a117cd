"""Reads the traces of a job in parallel, locally or on a Ray cluster, and merges the results.

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
    from selftime.scale.local import LocalProcessEngine as Local
    from selftime.scale.ray import RayEngine as Ray

__all__ = ["Engine", "Local", "Ray", "survey", "view"]

_DEFINITION_OF_PUBLIC_NAME = {
    "Engine": ("selftime.scale.engine", "Engine"),
    "Local": ("selftime.scale.local", "LocalProcessEngine"),
    "Ray": ("selftime.scale.ray", "RayEngine"),
    "survey": ("selftime.scale.collect", "survey"),
    "view": ("selftime.scale.collect", "view"),
}


def __getattr__(name: str) -> Any:
    if name not in _DEFINITION_OF_PUBLIC_NAME:
        raise AttributeError(f"module 'selftime.scale' has no attribute {name!r}")
    module_name, definition_name = _DEFINITION_OF_PUBLIC_NAME[name]
    return getattr(import_module(module_name), definition_name)
