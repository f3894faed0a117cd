"""A Python that has imported torch already, and forks for each program that a test runs.

To import torch and its compiler takes four seconds of a processor, for a program that runs for a
tenth of one. A forked program has a memory of its own, and ends as any other: what it cannot be
used for is what happens before torch is there, and how a process starts.
"""

import atexit
import ctypes
import gc
import json
import multiprocessing.process
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final

__all__ = ["Child", "Preloaded"]

ROOT: Final = Path(__file__).parents[1]
MODULES: Final = (
    "torch",
    "torch._dynamo",
    "torch.utils.data",
    "torch.profiler.python_tracer",
    "numpy",
    "http.server",
    "isal.igzip",
    "pydantic.type_adapter",
    "rich",
    "typer",
)
"""What every recorded program or its command imports, but our own."""
THREADS: Final = {"OMP_NUM_THREADS": "1"}
"""Read when torch is imported, so it is the same for all."""
LIMIT_S: Final = 120


class Child:
    """A forked program, as `subprocess.Popen` shows one."""

    def __init__(self, preloaded: "Preloaded", pid: int, stdout: Any, stderr: Any) -> None:
        self._preloaded = preloaded
        self._written = (stdout, stderr)
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._preloaded.ask(poll=self.pid)["status"]
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = self._preloaded.ask(wait=self.pid)["status"]
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float = LIMIT_S) -> tuple[str, str]:
        """Wait for its end; what it wrote."""
        too_long = threading.Timer(timeout, self.kill)
        too_long.start()
        try:
            self.wait()
        finally:
            too_long.cancel()
        texts = []
        for file in self._written:
            file.seek(0)
            texts.append(file.read())
            file.close()
        return texts[0], texts[1]


class Preloaded:
    """The process that forks; start one a session and close it."""

    def __init__(self) -> None:
        asks, self._orders = os.pipe()
        self._answers, tells = os.pipe()
        self._process = subprocess.Popen(  # noqa: S603 - this file
            [sys.executable, __file__, str(asks), str(tells)],
            env={**os.environ, **THREADS, "PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.DEVNULL,
            pass_fds=(asks, tells),
        )
        os.close(asks)
        os.close(tells)
        self._lines = os.fdopen(self._answers, encoding="utf-8")

    def start(self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Child:
        """Run what `python WORDS…` would, a script or `-m` and a module."""
        stdout, stderr = (_file() for _ in range(2))
        written = [stdout.name, stderr.name]
        environment = {**env, **THREADS}
        answer = self.ask(words=[*words], cwd=str(cwd), env=environment, written=written)
        return Child(self, answer["pid"], stdout, stderr)

    def run(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run to the end, as `subprocess.run` does with what is written captured."""
        child = self.start(words, cwd=cwd, env=os.environ if env is None else env)
        stdout, stderr = child.communicate()
        return subprocess.CompletedProcess([*words], child.wait(), stdout, stderr)

    def ask(self, **order: Any) -> dict[str, Any]:
        os.write(self._orders, json.dumps(order).encode() + b"\n")
        line = self._lines.readline()
        if not line:
            message = "the process with torch has ended; its error is above"
            raise RuntimeError(message)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        os.close(self._orders)
        self._lines.close()
        self._process.wait()


def _file() -> Any:
    return tempfile.NamedTemporaryFile("w+", encoding="utf-8")


def _serve(orders: IO[str], tells: int) -> dict[str, Any] | None:
    """Fork at each order; in a forked process return what it is to run."""
    for line in orders:
        order: dict[str, Any] = json.loads(line)
        if "words" in order:
            pid = os.fork()
            if pid == 0:
                return order
            answer: dict[str, int | None] = {"pid": pid}
        else:
            pid, flags = (order["wait"], 0) if "wait" in order else (order["poll"], os.WNOHANG)
            ended, status = os.waitpid(pid, flags)
            answer = {"status": os.waitstatus_to_exitcode(status) if ended else None}
        os.write(tells, json.dumps(answer).encode() + b"\n")
    return None


def _become(order: dict[str, Any]) -> None:
    """What a new process has: its folder, its environment, its output, its words."""
    os.chdir(order["cwd"])
    vars(multiprocessing.process)["ORIGINAL_DIR"] = order["cwd"]  # children that spawn look there
    os.environ.clear()
    os.environ.update(order["env"])
    for descriptor, path in zip((1, 2), order["written"], strict=True):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    is_module = order["words"][0] == "-m"
    sys.argv = order["words"][is_module:]
    sys.path[0] = order["cwd"] if is_module else str(Path(sys.argv[0]).resolve().parent)


def _run_script(path: Path) -> None:
    """As `python PATH` does; `runpy` would put back at the end what a program may have removed."""
    module = ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    exec(compile(path.read_bytes(), path, "exec"), vars(module))  # noqa: S102 - a test's own program


def _leave(modules: Iterable[str]) -> None:
    """Leave modules as they are when Python ends; the program's and our own are taken apart."""
    for name in modules:
        if (module := sys.modules.pop(name, None)) is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))


def _end_early() -> None:
    """End forked programs after Python's end, before PyTorch's libraries take themselves apart.

    Both took 0.2 s of a processor, of 0.3 s that an empty program took; processes that are not
    forked test it. The C library gives the exit status to its handlers: `_exit` is such a one.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit"):  # glibc's
        library.on_exit(library._exit, None)


def main() -> None:
    before = set(sys.modules)
    loaded: list[str] = []
    atexit.register(_leave, loaded)  # before all others, so that it runs after them
    for module in MODULES:
        with suppress(ModuleNotFoundError):  # another release of PyTorch or typer needs less
            __import__(module)
    loaded.extend(sys.modules.keys() - before)
    _end_early()
    gc.collect()
    gc.freeze()  # else each forked program walks all that torch made when it ends: 1.3 s of 1.6 s
    asks, tells = map(int, sys.argv[1:])
    with os.fdopen(asks, encoding="utf-8") as orders:
        order = _serve(orders, tells)
    os.close(tells)
    if order is not None:
        _become(order)
        if order["words"][0] == "-m":
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            _run_script(Path(sys.argv[0]))


if __name__ == "__main__":
    main()
