"""`for batch in selftime.watch(loader)`: a loop whose rounds are the steps.

A step begins with the wait for its batch and ends where the loop asks for the next one, so that the
wait belongs to the step that uses the batch.

A `watch` in the source makes one file in a process, however often its loop runs. A run that is long
enough is recorded in itself. A shorter one leaves what it held, and the runs that follow are
recorded as one loop, with what lies between them in their steps; their file takes the place of the
first if it holds more.
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


class _Site:
    """A `watch` in the source, and what came of its loop so far."""

    def __init__(self, code: CodeType, options: Options) -> None:
        self.code = code
        """Kept, so that no other code takes its identity."""
        self.recording = Recording("selftime.watch", options, one_file=True)
        self.done = False
        self._runs = 0
        self._inside = False

    def begin(self) -> bool:
        """A run of the loop begins; whether it is watched."""
        if self._inside or not self.recording.usable:  # it calls itself, or torch is not known
            return False
        watch = self.recording.watch
        if not watch.running:
            self.done = self._runs > 1  # what joined the runs was ended between two of them
            if self.done:
                return False
            self.recording.begin()
        watch.waits = False
        self._inside = watch.running
        self._runs += self._inside
        return self._inside

    def end(self, reason: str | None = None, *, left: bool = False) -> None:
        """A run of the loop has ended; `reason` tells why if it failed."""
        self._inside = False
        watch = self.recording.watch
        if watch.follows:
            self.recording.end()
        elif watch.done or reason is not None or self._runs == 1:
            self.recording.end(reason or ("the loop was left" if left else None))
            self.done = self._runs > 1 or (watch.partial is None and bool(watch.traces))
        else:
            watch.waits = True


class Loop(Generic[T]):
    """What `watch` returns: the iterable to whoever asks, and watched when it is iterated."""

    def __init__(self, iterable: Iterable[T], site: _Site) -> None:
        self._iterable = iterable
        self._site = site

    def __iter__(self) -> Iterator[T]:
        if self._site.done:
            return iter(self._iterable)
        return _watched(self._iterable, self._site)

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]  # its own error where it has none

    def __bool__(self) -> bool:
        return bool(self._iterable)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies and pickles objects asks before there is anything
            raise AttributeError(name)
        return getattr(self._iterable, name)

    def __repr__(self) -> str:
        return f"selftime.watch({self._iterable!r})"

    @property
    def recording(self) -> Recording:
        """The recording: its `trace`, and `advise()`."""
        return self._site.recording


_SITES: Final[dict[tuple[int, int, int], _Site]] = {}
"""By code, instruction, and the notebook's cell that runs."""


def watch(iterable: Iterable[T], **options: "Unpack[Options]") -> Loop[T]:
    """Record a few steady loop iterations over anything that can be iterated.

    Length and attributes are those of `iterable`. The first lines of a round set the program up and
    are not recorded; see `selftime.frameworks.recording.Options` for what can be asked. A second
    loop that is watched within the first records nothing and says so.
    """
    if not isinstance(iterable, Iterable) and not hasattr(iterable, "__getitem__"):
        kind = type(iterable).__name__
        raise UsageError(f"selftime.watch was given a `{kind}`, which cannot be iterated")
    caller = sys._getframe(1)  # noqa: SLF001 - the `watch` in the source is what makes one file
    key = (id(caller.f_code), caller.f_lasti, _cell())
    site = _SITES.get(key)
    if site is None:
        site = _SITES[key] = _Site(caller.f_code, options)
    return Loop(iterable, site)


def _cell() -> int:
    """The number of the notebook's cell that runs: to run it again is to record again."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return 0 if shell is None else int(shell.execution_count)


def _watched(iterable: Iterable[T], site: _Site) -> Iterator[T]:
    if not site.begin():
        yield from iterable
        return
    try:
        for item in iterable:
            yield item
            site.recording.step()
    except GeneratorExit:
        site.end(left=True)
        raise
    except BaseException as error:
        site.end(f"ended by {type(error).__name__}")
        raise
    site.end()
