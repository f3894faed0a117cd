"""Starts child Python processes, and sends and receives Python values over their pipes.

Each process is a new interpreter: not a fork of a process that may hold threads or a GPU, and not a
second run of the user's main module, which multiprocessing would import. Values travel as pickles,
between selftime's own processes only.
"""

import mmap
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any, Final

import selftime

_BYTES_OF_SIZE_PREFIX: Final = 8
_CHILD_PROCESS_SOURCE_CODE: Final = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "sys.path.insert(0, sys.argv[1]); from {module} import serve; serve()"
)
"""Program text of a child process. It ignores Ctrl-C; the parent process ends it by closing the
pipe.
"""


def start_python_process(
    module: str, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Starts a Python process that calls a module's `serve()`; its stdin and stdout are pipes.

    Args:
        module: The module's full name.
        environment: Variables that are added to this process's environment.
    """
    root = str(Path(selftime.__file__).parent.parent)
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", _CHILD_PROCESS_SOURCE_CODE.format(module=module), root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=None if environment is None else {**os.environ, **environment},
    )


def send_value(pipe: IO[bytes], value: object) -> None:
    """Writes a Python value to a pipe: the byte sizes of its pickle and arrays, then these."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=arrays.append)
    pieces = [memoryview(head), *(array.raw() for array in arrays)]
    pipe.write(len(pieces).to_bytes(_BYTES_OF_SIZE_PREFIX, "little"))
    for piece in pieces:
        pipe.write(piece.nbytes.to_bytes(_BYTES_OF_SIZE_PREFIX, "little"))
    for piece in pieces:
        pipe.write(piece)
    pipe.flush()


def receive_value(pipe: IO[bytes]) -> Any:
    """Reads the next Python value from a pipe; its arrays share one block of memory.

    Raises:
        EOFError: The other side has closed the pipe, or has ended.
    """
    head, *sizes = (_read_size_prefix(pipe) for _ in range(_read_size_prefix(pipe)))
    pickled = _read_exactly(pipe, head)
    room = memoryview(mmap.mmap(-1, max(sum(sizes), 1)))
    filled = 0
    while filled < sum(sizes):
        got = pipe.readinto(room[filled : sum(sizes)])  # type: ignore[attr-defined]  # a pipe has it
        if not got:
            raise EOFError
        filled += got
    ends = list(accumulate(sizes, initial=0))
    arrays = [room[begin:end] for begin, end in pairwise(ends)]
    return pickle.loads(pickled, buffers=arrays)  # noqa: S301 - from our own process


def _read_size_prefix(pipe: IO[bytes]) -> int:
    return int.from_bytes(_read_exactly(pipe, _BYTES_OF_SIZE_PREFIX), "little")


def _read_exactly(pipe: IO[bytes], size: int) -> bytes:
    read = pipe.read(size)
    if len(read) < size:
        raise EOFError
    return read
