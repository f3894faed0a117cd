"""The files below an address of another machine."""

from collections.abc import Iterator

import fsspec

from selftime.errors import UnreadableTrace

__all__ = ["files_below"]


def files_below(address: str) -> Iterator[tuple[str, str, int | None]]:
    """Each file's address, its folder below `address`, and its size if the other side tells it.

    Raises:
        UnreadableTrace: There is no package for such addresses, or no answer.
    """
    try:
        system, root = fsspec.core.url_to_fs(address)
        system.invalidate_cache()
        for folder, _, files in system.walk(root, detail=True):
            below = folder[len(root) :].strip("/")
            for entry in files.values():
                place = system.unstrip_protocol(entry["name"])
                yield place, below, entry.get("size")
    except (OSError, ValueError, ImportError) as error:
        first = str(error).partition("\n")[0] or type(error).__name__
        raise UnreadableTrace(f"`{address}` cannot be read: {first}") from error
