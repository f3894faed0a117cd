"""An event's text with other values in it; the others stay as they are written."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


def with_values(event: bytes, values: Mapping[str, Any]) -> bytes:
    """The event with these values of its keys, which it may not have had.

    >>> with_values(b'{"ts": 1.50, "tid": 7}', {"tid": 9})
    b'{"ts":1.50,"tid":9}'
    """
    return msgspec.json.encode({**_OBJECT.decode(event), **values})


def microseconds(nanoseconds: int) -> Raw:
    """A time as Kineto writes it, exactly.

    >>> bytes(microseconds(1_500)), bytes(microseconds(-1))
    (b'1.500', b'-0.001')
    """
    whole, part = divmod(abs(nanoseconds), 1000)
    return Raw(b"%b%d.%03d" % (b"-" if nanoseconds < 0 else b"", whole, part))
