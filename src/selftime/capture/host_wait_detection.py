"""Detects where code in a test's `with` block makes the host wait for the device.

With a GPU, torch warns of its own synchronising calls (`torch.cuda.set_sync_debug_mode`), and only
of these. Without one, a device is simulated (see `preflight`).
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
from selftime.capture.preflight import PreflightWaits, PreflightWaitSite, preflight

_UserLocation: TypeAlias = tuple[str | None, int | None, str | None]
"""(file, line, function) in the user's code; all None if no user's frame is on the stack."""

_TORCH_SYNC_WARNING_START: Final = "called a synchronizing CUDA operation"
"""Beginning of torch's warning that an operation synchronizes."""

_NO_DEVICE_USED_MESSAGE: Final = (
    "nothing in the block used a CUDA device, so nothing was checked; put the model and its data "
    "on `cuda`"
)


class HostWaitDetector(Protocol):
    """Detects waits of the host for the device; `end` returns a message, or None without waits."""

    def begin(self) -> None: ...

    def end(self) -> str | None: ...


@contextmanager
def host_wait_detector() -> Iterator[HostWaitDetector]:
    """Yields a detector of host waits, on the GPU if there is one, else on a simulated device."""
    if torch.cuda.is_available():
        yield _GpuWaitDetector()
        return
    with preflight() as found:
        yield _SimulatedWaitDetector(found)


class _CudaTensorUseDetector(TorchFunctionMode):
    """Torch function mode that stores whether a torch call used or returned a CUDA tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.was_used = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.was_used:
            self.was_used = any(
                isinstance(value, torch.Tensor) and value.device.type == "cuda"
                for value in (*args, result)
            )
        return result


class _SimulatedWaitDetector:
    """Detects waits of the host for a simulated CUDA device, on machines without a GPU."""

    def __init__(self, found: PreflightWaits) -> None:
        self._found = found
        self._previous_counts: Counter[Any] = Counter()
        self._previous_unchecked = 0
        self._cuda_use = _CudaTensorUseDetector()

    def begin(self) -> None:
        self._previous_counts = _wait_count_by_site(self._found.sites)
        self._previous_unchecked = len(self._found.not_checked)
        self._cuda_use = _CudaTensorUseDetector()
        self._cuda_use.__enter__()  # type: ignore[no-untyped-call]  # torch

    def end(self) -> str | None:
        self._cuda_use.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # torch
        times = _wait_count_by_site(self._found.sites)
        times.subtract(self._previous_counts)
        sites = [site for site in self._found.sites if times[_identifying_fields_of_site(site)] > 0]
        for part in self._found.not_checked[self._previous_unchecked :]:
            warnings.warn(f"not checked: {part.file}:{part.line}: {part.why}", stacklevel=3)
        if not sites:
            return None if self._cuda_use.was_used else _NO_DEVICE_USED_MESSAGE
        messages = [
            _wait_site_message(site, times[_identifying_fields_of_site(site)]) for site in sites
        ]
        return _message_with_title(messages, "on a GPU the host would wait")


class _GpuWaitDetector:
    """Detects waits of the host for a real GPU, from torch's synchronization warnings."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._counts: Counter[_UserLocation] = Counter()
        self._files = SourceFiles(())
        self._cuda_use = _CudaTensorUseDetector()

    def begin(self) -> None:
        self._counts.clear()
        self._cuda_use = _CudaTensorUseDetector()
        before = torch.cuda.get_sync_debug_mode()
        self._stack.enter_context(warnings.catch_warnings())
        self._stack.callback(torch.cuda.set_sync_debug_mode, before)
        warnings.simplefilter("always")
        shown = warnings.showwarning

        def count_sync_warning(message: Any, *args: Any, **kwargs: Any) -> None:
            if _TORCH_SYNC_WARNING_START in str(message):
                self._counts[self._location_of_calling_user_code()] += 1
            else:
                shown(message, *args, **kwargs)

        warnings.showwarning = count_sync_warning
        self._stack.enter_context(self._cuda_use)
        torch.cuda.set_sync_debug_mode("warn")

    def end(self) -> str | None:
        self._stack.close()
        if not self._counts:
            return None if self._cuda_use.was_used else _NO_DEVICE_USED_MESSAGE
        messages = [
            _wait_location_message(location, "a synchronising call", times)
            for location, times in self._counts.items()
        ]
        return _message_with_title(messages, "the host waited")

    def _location_of_calling_user_code(self) -> _UserLocation:
        for frame, line in traceback.walk_stack(sys._getframe(2)):  # noqa: SLF001 - to find the caller's line
            code = frame.f_code
            file = None if code.co_filename == __file__ else self._files.user_file(code.co_filename)
            if file is not None:
                return file, line, code.co_name
        return None, None, None


def _identifying_fields_of_site(site: PreflightWaitSite) -> Any:
    return site.file, site.line, site.op, site.kind, site.phase, site.inside, site.fix


def _wait_count_by_site(sites: list[PreflightWaitSite]) -> Counter[Any]:
    times: Counter[Any] = Counter()
    for site in sites:
        times[_identifying_fields_of_site(site)] += site.times
    return times


def _message_with_title(messages: list[str], what: str) -> str:
    places = "1 line" if len(messages) == 1 else f"{len(messages)} places"
    return "\n".join([f"{what} for the device at {places}:", *messages])


def _wait_site_message(site: PreflightWaitSite, times: int) -> str:
    through = f" through {site.inside}" if site.inside else ""
    backward = ", in the backward pass" if site.phase == "backward" else ""
    what = f"`{site.op}`{through}{backward}"
    return _wait_location_message((site.file, site.line, site.function), what, times, site.fix)


def _wait_location_message(location: _UserLocation, what: str, times: int, fix: str = "") -> str:
    """Returns a message about host waits at a source line: their number, the code and the fix."""
    file, line, function = location
    where = "outside your code" if file is None else f"{file}:{line} in {function}"
    repetition = "" if times == 1 else f", {times} times"
    source_line = linecache.getline(file, line).strip() if file and line else ""
    return "\n".join(
        [
            f"  {where}: {what}{repetition}",
            *(f"      {part}" for part in (source_line, fix) if part),
        ]
    )
