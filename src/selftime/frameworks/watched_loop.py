"""Records a loop whose iterations are the steps: `for batch in selftime.watch(loader)`.

A step begins with the wait for its batch and ends when the loop requests the next one, so that the
wait belongs to the step that uses the batch.

Each `watch` in the source writes one file per process, however often its loop runs. A long run is
recorded by itself. After a short run, the following runs are recorded together as one loop; their
file replaces the first if it has more steps.
"""

import sys
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from selftime.errors import UsageError
from selftime.frameworks.recording import Options, Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class _WatchSite:
    """A call of `watch` in the user's source, and the recording that this call makes."""

    def __init__(self, code: CodeType, options: Options) -> None:
        self.code = code
        """The code object that contains the call, stored so that Python does not reuse its `id`."""
        self.recording = Recording("selftime.watch", options, one_file=True)
        self.done = False
        self._runs = 0
        self._inside = False

    def begin_loop_run(self) -> bool:
        """Begins an execution of the loop; returns whether its iterations are recorded."""
        if self._inside or not self.recording.usable:  # nested in itself, or torch is unsupported
            return False
        watch = self.recording.watch
        if not watch.running:
            self.done = self._runs > 1  # the joint recording ended between two runs
            if self.done:
                return False
            self.recording.begin()
        watch.may_be_replaced = False
        self._inside = watch.running
        self._runs += self._inside
        return self._inside

    def end_loop_run(self, reason: str | None = None, *, was_left: bool = False) -> None:
        """Ends an execution of the loop; `reason` says why it failed, `was_left` if by break."""
        self._inside = False
        watch = self.recording.watch
        if watch.reports_to_run:
            self.recording.end()
        elif watch.done or reason is not None or self._runs == 1:
            self.recording.end(reason or ("the loop was left" if was_left else None))
            self.done = self._runs > 1 or (watch.partial is None and bool(watch.traces))
        else:
            watch.may_be_replaced = True


class WatchedLoop(Generic[T]):
    """Wraps an iterable; a loop over the wrapper records a few iterations as steps."""

    def __init__(self, iterable: Iterable[T], site: _WatchSite) -> None:
        self._iterable = iterable
        self._site = site

    def __iter__(self) -> Iterator[T]:
        if self._site.done:
            return iter(self._iterable)
        return _iterate_and_record(self._iterable, self._site)

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]  # raises the iterable's own error

    def __bool__(self) -> bool:
        return bool(self._iterable)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle ask before attributes exist
            raise AttributeError(name)
        return getattr(self._iterable, name)

    def __repr__(self) -> str:
        return f"selftime.watch({self._iterable!r})"

    @property
    def recording(self) -> Recording:
        """Returns the recording of the loop, with its `trace` and `advise()`."""
        return self._site.recording


_WATCH_SITE_BY_CALL: Final[dict[tuple[int, int, int], _WatchSite]] = {}
"""Maps each call of `watch`, by (id of code object, instruction, notebook cell), to its
recording."""


def watch(iterable: Iterable[T], **options: "Unpack[Options]") -> WatchedLoop[T]:
    """Returns a wrapper of an iterable; a loop over the wrapper records a few iterations.

    The result has the length and attributes of `iterable`. For options see
    `selftime.frameworks.recording.Options`. A watched loop inside another watched loop is not
    recorded, and says so.
    """
    if not isinstance(iterable, Iterable) and not hasattr(iterable, "__getitem__"):
        kind = type(iterable).__name__
        raise UsageError(f"selftime.watch was given a `{kind}`, which cannot be iterated")
    caller = sys._getframe(1)  # noqa: SLF001 - identifies the `watch` call in the source
    key = (id(caller.f_code), caller.f_lasti, _notebook_cell_number())
    site = _WATCH_SITE_BY_CALL.get(key)
    if site is None:
        site = _WATCH_SITE_BY_CALL[key] = _WatchSite(caller.f_code, options)
    return WatchedLoop(iterable, site)


def _notebook_cell_number() -> int:
    """Returns the execution count of the running notebook cell; 0 outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return 0 if shell is None else int(shell.execution_count)


def _iterate_and_record(iterable: Iterable[T], site: _WatchSite) -> Iterator[T]:
    if not site.begin_loop_run():
        yield from iterable
        return
    try:
        for item in iterable:
            yield item
            site.recording.step()
    except GeneratorExit:
        site.end_loop_run(was_left=True)
        raise
    except BaseException as error:
        site.end_loop_run(f"ended by {type(error).__name__}")
        raise
    site.end_loop_run()
