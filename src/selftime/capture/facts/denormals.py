"""Whether arithmetic meets denormal numbers, as the processor itself remembers it.

Numbers below 1.2e-38 in float32 have no leading one, and some instructions take many times as long
on them. The control register of SSE and AVX, MXCSR, tells whether they are flushed to zero, and
keeps a flag that an operand was one until it is cleared (Intel 64 and IA-32 Architectures Software
Developer's Manual, volume 1, section 10.2.3). It is read where a C library gives it out: on x86-64
with glibc. The register belongs to a thread. Functions of MKL (square roots, say) hand it back as
they found it on some processors: what only they have met is not seen.
"""

import ctypes
import platform
import sys
import threading
from typing import Any, Final

_WORDS: Final = 8
"""`fenv_t` of glibc on x86-64: 28 bytes of the x87 unit, then MXCSR."""
_MXCSR: Final = 7
_OPERAND: Final = 1 << 1
"""An operand was denormal."""
_TREATED_AS_ZERO: Final = 1 << 6
_FLUSHED: Final = 1 << 15


class Watch:
    """Looks for denormal operands on the thread that begins it."""

    def __init__(self) -> None:
        self._thread: int | None = None

    def begin(self) -> None:
        """Forget the denormal operands that this thread has met."""
        self._thread = None
        environment = _read()
        if environment is not None:
            environment[_MXCSR] &= ~_OPERAND
            _library().fesetenv(environment)
            self._thread = threading.get_ident()

    def met(self) -> bool | None:
        """Whether the thread met one since; None where untold, and on another thread."""
        environment = _read()
        if environment is None or self._thread != threading.get_ident():
            return None
        return bool(environment[_MXCSR] & _OPERAND)


def are_flushed() -> bool | None:
    """Whether denormal operands and results of this thread are zeros; None where untold."""
    environment = _read()
    if environment is None:
        return None
    both = _TREATED_AS_ZERO | _FLUSHED
    return bool(environment[_MXCSR] & both == both)


def _read() -> Any:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    if platform.libc_ver()[0] != "glibc":
        return None
    environment = (ctypes.c_uint32 * _WORDS)()
    return None if _library().fegetenv(environment) else environment


def _library() -> Any:
    """The C library's functions on the floating-point environment."""
    return ctypes.CDLL("libm.so.6")
