"""Blocks in which the host may not wait for the device, on a machine with a GPU or without.

With a GPU, torch warns of its own synchronising calls (`torch.cuda.set_sync_debug_mode`); it knows
of no others. Without one, a device is pretended (see `preflight`).
"""

import linecache
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

from selftime.capture.lines.sources import SourceFiles
from selftime.capture.preflight import Found, Site, preflight

_Place: TypeAlias = tuple[str | None, int | None, str | None]
"""File, line and function; none of them where no frame is the user's."""

_WARNING: Final = "called a synchronizing CUDA operation"
"""What torch's warning begins with."""

_UNUSED: Final = (
    "nothing in the block used a CUDA device, so nothing was checked; put the model and its data "
    "on `cuda`"
)


class Waits(Protocol):
    """Begins and ends a block; its end tells what is wrong, or None."""

    def begin(self) -> None: ...

    def end(self) -> str | None: ...


@contextmanager
def watching() -> Iterator[Waits]:
    """What sees the host wait, for blocks within: torch itself where there is a GPU."""
    if torch.cuda.is_available():
        yield _Real()
        return
    with preflight() as found:
        yield _Pretended(found)


class _Used(TorchFunctionMode):
    """Whether anything was done with a tensor on a CUDA device."""

    def __init__(self) -> None:
        super().__init__()
        self.device = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.device:
            self.device = any(
                isinstance(value, torch.Tensor) and value.device.type == "cuda"
                for value in (*args, result)
            )
        return result


class _Pretended:
    """Blocks of a test that runs with a pretended device."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._before: Counter[Any] = Counter()
        self._unchecked = 0
        self._used = _Used()

    def begin(self) -> None:
        self._before = _times(self._found.sites)
        self._unchecked = len(self._found.not_checked)
        self._used = _Used()
        self._used.__enter__()  # type: ignore[no-untyped-call]  # torch

    def end(self) -> str | None:
        self._used.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # torch
        times = _times(self._found.sites)
        times.subtract(self._before)
        sites = [site for site in self._found.sites if times[_key(site)] > 0]
        for part in self._found.not_checked[self._unchecked :]:
            warnings.warn(f"not checked: {part.file}:{part.line}: {part.why}", stacklevel=3)
        if not sites:
            return None if self._used.device else _UNUSED
        told = [_site(site, times[_key(site)]) for site in sites]
        return _all(told, "on a GPU the host would wait")


class _Real:
    """Blocks of a test on a machine with a GPU."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._seen: Counter[_Place] = Counter()
        self._files = SourceFiles(())
        self._used = _Used()

    def begin(self) -> None:
        self._seen.clear()
        self._used = _Used()
        before = torch.cuda.get_sync_debug_mode()
        self._stack.enter_context(warnings.catch_warnings())
        self._stack.callback(torch.cuda.set_sync_debug_mode, before)
        warnings.simplefilter("always")
        shown = warnings.showwarning

        def show(message: Any, *args: Any, **kwargs: Any) -> None:
            if _WARNING in str(message):
                self._seen[self._place()] += 1
            else:
                shown(message, *args, **kwargs)

        warnings.showwarning = show
        self._stack.enter_context(self._used)
        torch.cuda.set_sync_debug_mode("warn")

    def end(self) -> str | None:
        self._stack.close()
        if not self._seen:
            return None if self._used.device else _UNUSED
        told = [_told(place, "a synchronising call", times) for place, times in self._seen.items()]
        return _all(told, "the host waited")

    def _place(self) -> _Place:
        for frame, line in traceback.walk_stack(sys._getframe(2)):  # noqa: SLF001 - the way to the caller's line
            code = frame.f_code
            file = None if code.co_filename == __file__ else self._files.user_file(code.co_filename)
            if file is not None:
                return file, line, code.co_name
        return None, None, None


def _key(site: Site) -> Any:
    return site.file, site.line, site.op, site.kind, site.phase, site.inside, site.fix


def _times(sites: list[Site]) -> Counter[Any]:
    times: Counter[Any] = Counter()
    for site in sites:
        times[_key(site)] += site.times
    return times


def _all(told: list[str], what: str) -> str:
    places = "1 line" if len(told) == 1 else f"{len(told)} places"
    return "\n".join([f"{what} for the device at {places}:", *told])


def _site(site: Site, times: int) -> str:
    through = f" through {site.inside}" if site.inside else ""
    backward = ", in the backward pass" if site.phase == "backward" else ""
    what = f"`{site.op}`{through}{backward}"
    return _told((site.file, site.line, site.function), what, times, site.fix)


def _told(place: _Place, what: str, times: int, fix: str = "") -> str:
    """A place with the text of its line, and what to do."""
    file, line, function = place
    where = "a place without a line of yours" if file is None else f"{file}:{line} in {function}"
    often = "" if times == 1 else f", {times} times"
    text = linecache.getline(file, line).strip() if file and line else ""
    return "\n".join(
        [f"  {where}: {what}{often}", *(f"      {part}" for part in (text, fix) if part)]
    )
