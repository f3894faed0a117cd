"""The recorder's own marks on stderr, kept off the program's terminal.

Whenever it starts and stops, the recorder writes a line that begins with `USDT:`, from C++ and at
its highest level, so no setting drops it without dropping warnings. What else is written to stderr
in that moment is passed on.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MARK: Final = b"USDT:"


@contextmanager
def without_marks() -> Iterator[None]:
    """Hold stderr back for a moment, and pass on all lines but the recorder's marks."""
    try:
        stderr = os.dup(2)
    except OSError:  # the program closed it
        yield
        return
    try:
        holding = tempfile.TemporaryFile()  # noqa: SIM115 - it is entered below
    except OSError:  # no room for it: the marks pass
        os.close(stderr)
        yield
        return
    with holding as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            for line in held:
                if not line.startswith(MARK):
                    _pass_on(line)


def _pass_on(line: bytes) -> None:
    with memoryview(line) as rest:
        written = 0
        while written < len(rest):
            written += os.write(2, rest[written:])
