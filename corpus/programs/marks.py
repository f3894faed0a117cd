"""The clock that `clock.py` puts into a program.

Events are a list of (instant, what, name): `start`, `enter` and `leave` of a phase, `iteration` of
a loop, `end` of the program. Instants are in ns of `time.perf_counter_ns`, which processes of one
machine share. Each process writes its own file into the folder that `PROGRAM_CLOCK` names, whenever
no phase goes on. Garbage collections, imports and compilations by `torch.compile` are phases that
the clock sees by itself, in the thread that imported it first. A collection within selftime's own
work, or as the interpreter ends, is no part of the program: of selftime the clock knows no more
than its folder.

A function written in Python must not stand in `gc.callbacks`: what a signal handler raises while it
runs, such as `KeyboardInterrupt` at Ctrl-C, is printed and lost. So functions written in C alone
note when a collection begins and ends, and the files of the stack; the next event reads that.
"""

import atexit
import builtins
import functools
import gc
import importlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, chain, repeat, takewhile
from operator import attrgetter, is_not
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Final

__all__ = ["batches", "end", "enter", "iteration", "leave"]

SHORT_NS: Final = 20_000
"""An import that takes less finds its module loaded, and is no phase."""

_OWN: Final = f"{os.sep}selftime{os.sep}capture{os.sep}"
_TORCH: Final = f"{os.sep}torch{os.sep}"
_PROFILER: Final = f"torch{os.sep}profiler{os.sep}", f"torch{os.sep}autograd{os.sep}profiler"
_PROGRAM: Final = str(Path(__file__).parents[1])
"""The folder of the program, below which the clock's own folder lies."""
_FOLDER: Final = Path(os.environ["PROGRAM_CLOCK"])
_compilers: list[tuple[str, str | None, str]] = [
    ("torch._dynamo.convert_frame", None, "_compile"),
    (
        "torch._functorch._aot_autograd.runtime_wrappers",
        "_AutogradBackwardCompiler",
        "get_or_compile",
    ),
]
"""Functions of torch that compile: the module, the class if there is one, the name."""
_events: list[tuple[int, str, str]] = []
_open: list[str] = []
_collections: deque[tuple[str, int, int, list[str]]] = deque()
"""Of each beginning and end of a collection that is no event yet: which, when, in which thread, and
the files of that thread's stack, the innermost first."""
_iterators = 0


class _State:
    thread = get_ident()
    imports = 0
    """How many imports go on within each other."""


def enter(part: str) -> None:
    if get_ident() == _State.thread:
        _read_collections()
        _open.append(part)
        _events.append((perf_counter_ns(), "enter", part))


def leave() -> None:
    if get_ident() == _State.thread and _open:
        _read_collections()
        _events.append((perf_counter_ns(), "leave", _open.pop()))
        if not _open:
            _write()


def iteration(loop: str) -> None:
    _events.append((perf_counter_ns(), "iteration", loop))


def batches(loader: Iterable[Any]) -> Iterator[Any]:
    """Yields what the loader does; each wait is a phase."""
    global _iterators
    _iterators += 1
    part = "first_batch" if _iterators == 1 else "epoch_boundary"
    enter(part)
    iterator = iter(loader)
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            leave()
            return
        leave()
        yield item
        enter("data_wait")


def end() -> None:
    _read_collections()
    _events.append((perf_counter_ns(), "end", ""))
    _write()


def _write() -> None:
    path = _FOLDER / f"{os.getpid()}.json"
    path.write_text(json.dumps(_events), encoding="utf-8")


def _notes_collections() -> Callable[[str, dict[str, int]], object]:
    """Returns a callable for `gc.callbacks`, made of functions in C, that fills `_collections`.

    Python calls it with the name of a phase, "start" or "stop". It looks up the property of that
    name, whose getter takes the next element of an iterator.
    """

    def getter(phase: str) -> property:
        threads, more_threads = iter(get_ident, None), iter(get_ident, None)
        frames = map(dict.get, iter(sys._current_frames, None), threads)  # noqa: SLF001 - the only way to the frames
        chains = map(chain, map(repeat, frames, repeat(1)), repeat(repeat("f_back")))
        outward = map(accumulate, chains, repeat(getattr))
        stacks = map(takewhile, repeat(functools.partial(is_not, None)), outward)
        files = map(list, map(map, repeat(attrgetter("f_code.co_filename")), stacks))
        notes = zip(repeat(phase), iter(perf_counter_ns, None), more_threads, files)
        return property(functools.partial(next, map(_collections.append, notes)))

    phases = type("Phases", (), {phase: getter(phase) for phase in ("start", "stop")})
    return functools.partial(getattr, phases())


def _read_collections() -> None:
    """Makes events of the collections noted since the last event, in the thread of the events."""
    while _collections:
        phase, at, thread, files = _collections.popleft()
        if thread != _State.thread:
            continue
        if phase == "start" and files and not _is_recorder_at_work(files):
            _open.append("garbage_collection")
            _events.append((at, "enter", "garbage_collection"))
        elif phase == "stop" and _open and _open[-1] == "garbage_collection":
            _events.append((at, "leave", _open.pop()))


def _is_recorder_at_work(files: list[str]) -> bool:
    """Returns whether the program has called the recorder, which started the program itself.

    Where a frame of the recorder wraps a function of torch, the program is at work, unless that
    function is the profiler's. What the recorder imports for itself is its own work.
    """
    is_torch = is_import = is_at_work = False
    for file in files:
        if _OWN in file:
            is_at_work = is_at_work or file.endswith("recorded_process.py")  # it wraps nothing
            if not file.endswith("after_import.py"):  # through it torch is loaded
                is_at_work = is_at_work or is_import or not is_torch
        if file.startswith(_PROGRAM) and file != __file__:
            return is_at_work
        is_torch = is_torch or (_TORCH in file and not any(part in file for part in _PROFILER))
        is_import = file.startswith("<frozen importlib")
    return is_at_work


def _timed(imports: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        if get_ident() != _State.thread:
            return imports(*args, **kwargs)
        _read_collections()
        _State.imports += 1
        began, known = perf_counter_ns(), len(_events)
        outermost = _State.imports == 1
        if outermost:
            _open.append("imports")
            _events.append((began, "enter", "imports"))
        try:
            return imports(*args, **kwargs)
        finally:
            _State.imports -= 1
            if outermost:
                _read_collections()
                _open.pop()
                now = perf_counter_ns()
                if now - began < SHORT_NS and len(_events) == known + 1:
                    _events.pop()
                else:
                    _events.append((now, "leave", "imports"))
                _find_compilers()

    return timed


def _find_compilers() -> None:
    """Time the functions that compile, once their modules are loaded."""
    for place in [place for place in _compilers if place[0] in sys.modules]:
        module, kind, name = place
        owner: Any = sys.modules[module]
        if kind is not None:
            owner = getattr(owner, kind, None)
        if hasattr(owner, name):
            _compilers.remove(place)
            setattr(owner, name, _compiling(getattr(owner, name)))


def _compiling(compiles: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compiles)
    def timed(*args: Any, **kwargs: Any) -> Any:
        enter("compile")
        try:
            return compiles(*args, **kwargs)
        finally:
            leave()

    return timed


def _forked() -> None:
    _events.clear()
    _open.clear()
    _collections.clear()
    _State.imports = 0
    _State.thread = get_ident()
    _events.append((perf_counter_ns(), "start", ""))


_events.append((perf_counter_ns(), "start", ""))
os.register_at_fork(after_in_child=_forked)
_on_collection = _notes_collections()
gc.callbacks.append(_on_collection)
atexit.register(gc.callbacks.remove, _on_collection)  # later ones are the interpreter's
builtins.__import__ = _timed(builtins.__import__)
importlib.import_module = _timed(importlib.import_module)
