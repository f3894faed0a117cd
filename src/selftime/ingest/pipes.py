"""Fresh interpreters, and values sent to them and back over pipes.

Each is started anew: no fork of a process that may hold threads or a GPU, and no second run of the
user's main module, which multiprocessing would import. Values travel as pickles, between selftime
and itself only.
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

_LENGTH: Final = 8
_MAIN: Final = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "sys.path.insert(0, sys.argv[1]); from {module} import serve; serve()"
)
"""Ctrl-C reaches every process of a terminal: who started these ends them, by their pipes."""


def start(module: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """An interpreter that runs `serve` of a module, with pipes to it and from it.

    Args:
        module: The module's full name.
        environment: What is added to this process's environment.
    """
    root = str(Path(selftime.__file__).parent.parent)
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", _MAIN.format(module=module), root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=None if environment is None else {**os.environ, **environment},
    )


def send(pipe: IO[bytes], value: object) -> None:
    """A value as a pickle, its arrays behind it: first how long each is."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=arrays.append)
    pieces = [memoryview(head), *(array.raw() for array in arrays)]
    pipe.write(len(pieces).to_bytes(_LENGTH, "little"))
    for piece in pieces:
        pipe.write(piece.nbytes.to_bytes(_LENGTH, "little"))
    for piece in pieces:
        pipe.write(piece)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The value, its arrays in memory of their own, which goes back to the system with them.

    Raises:
        EOFError: The other side has closed the pipe, or has ended.
    """
    head, *sizes = (_number(pipe) for _ in range(_number(pipe)))
    pickled = _exactly(pipe, head)
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


def _number(pipe: IO[bytes]) -> int:
    return int.from_bytes(_exactly(pipe, _LENGTH), "little")


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    read = pipe.read(size)
    if len(read) < size:
        raise EOFError
    return read
