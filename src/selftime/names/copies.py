"""What the names of copies and fills mean: from where to where, and in what memory of the host."""

import re
from typing import Final, NamedTuple


class Copy(NamedTuple):
    """What a copy's name tells; None where it does not."""

    direction: str | None
    """Such as HtoD, DtoH, DtoD, PtoP (between devices), HtoH; A is an array of a device."""
    host_memory: str | None
    """For copies from or to the host: pageable, pinned or managed."""


_DIRECTION: Final = re.compile(r"(?<![A-Z])([HDA]to[HDA]|PtoP)(?![A-Za-z])")
"""As CUPTI and Kineto have it (CUpti_ActivityMemcpyKind)."""
_PARTS: Final = {"Host": "H", "H": "H", "M": "H", "Device": "D", "D": "D", "Peer": "P", "P": "P"}
_WORDS: Final = re.compile(
    r"(Host|Device|Peer)To(Host|Device|Peer)(?![a-z])"
    r"|(?<![A-Za-z0-9])([HMDP])2([HMDP])(?![A-Za-z0-9])"
)
"""As HIP (`hipMemcpyKind`), Level Zero (M is memory of the host), and shorthand have it."""
_ENDS: Final = re.compile(r"\((.+?) -> (.+?)\)")
_HOST_MEMORY: Final = ("pageable", "pinned", "managed")


def copy_of(name: str) -> Copy:
    """What the name of a copy tells.

    >>> copy_of("Memcpy HtoD (Pageable -> Device)")
    Copy(direction='HtoD', host_memory='pageable')
    >>> copy_of("Memcpy DtoH (Device -> Host)"), copy_of("CopyDeviceToHost").direction
    (Copy(direction='DtoH', host_memory=None), 'DtoH')
    >>> copy_of("zeCommandListAppendMemoryCopy(M2D)").direction, copy_of("Memcpy").direction
    ('HtoD', None)
    """
    direction = _direction(name)
    ends = _ENDS.search(name)
    if ends is None or direction is None or "H" not in direction:
        return Copy(direction, None)
    on_host = ends[1] if direction.startswith("H") else ends[2]
    memory = on_host.lower()
    return Copy(direction, memory if memory in _HOST_MEMORY else None)


def _direction(name: str) -> str | None:
    found = _DIRECTION.search(name)
    if found:
        return found[1]
    words = _WORDS.search(name)
    if words is None:
        return None
    source, target = (_PARTS[word] for word in words.groups() if word)
    return f"{source}to{target}"
