"""Threads that a cut trace has only so that every viewer shows its events: whose they are.

`selftime cut` moves slices that cross others to threads of their own, and says so under the
top-level key `selftime_tracks`, format `selftime.tracks/1`. Reading puts them back.
"""

from collections.abc import Mapping
from typing import Any

Key = tuple[str, str]


def homes_of(metadata: Mapping[str, Any]) -> dict[Key, Key]:
    """For each added thread the one that its events belong to, by process and thread."""
    told = metadata.get("selftime_tracks")
    tracks = told.get("tracks") if isinstance(told, dict) else None
    found: dict[Key, Key] = {}
    for one in tracks if isinstance(tracks, list) else []:
        texts = [one.get(key) for key in ("process", "tid", "of")] if isinstance(one, dict) else []
        match texts:
            case [str(process), str(tid), str(of)]:
                found[process, tid] = process, of
    return found
