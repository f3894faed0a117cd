"""Removes lines that torch's profiler writes to stderr about itself.

At each start and stop, the profiler writes a line that begins with `USDT:`, from C++ at the highest
log level: no setting drops it without dropping warnings too. Other lines tell of circumstances that
it copes with. Other output to stderr is passed on.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

USDT_LINE_PREFIX: Final = b"USDT:"
NO_GPU_TEXT: Final = b"gpuGetDeviceCount failed"
"""Text in the line that the profiler of a build with CUDA writes where there is no driver."""
_HIDDEN_TEXTS: Final = (
    NO_GPU_TEXT,
    b"External init callback must run in same thread as registerClient",  # first used in a thread
    b"disableProfiler called but no active profiling session found",  # ended in its warm-up
    b"Python replay stack is empty during pop operation",  # a frame from before the recording
)
"""Texts in lines that are removed."""


@contextmanager
def hide_usdt_lines() -> Iterator[None]:
    """Removes the profiler's lines on itself from what a `with` block writes to stderr."""
    try:
        stderr = os.dup(2)
    except OSError:  # the program has closed stderr
        yield
        return
    try:
        captured = tempfile.TemporaryFile()  # noqa: SIM115 - entered below
    except OSError:  # no space for a temporary file: do not filter
        os.close(stderr)
        yield
        return
    with captured as captured_file:
        os.dup2(captured_file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            captured_file.seek(0)
            for line in captured_file:
                if not _tells_of_profiler(line):
                    _write_line_to_stderr(line)


def _tells_of_profiler(line: bytes) -> bool:
    return line.startswith(USDT_LINE_PREFIX) or any(text in line for text in _HIDDEN_TEXTS)


def _write_line_to_stderr(line: bytes) -> None:
    with memoryview(line) as rest:
        written = 0
        while written < len(rest):
            written += os.write(2, rest[written:])
