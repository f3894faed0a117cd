"""Traps of torch's profiler: what it does in silence, or dies of, is told with what to do instead.

What torch says by itself is not said again. Nothing here is told of a recording that no code of the
program asked for (`Traps.attended`).
"""

import atexit
import gc
import inspect
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from torch._C._autograd import _disable_profiler, _profiler_enabled
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerAction, ProfilerActivity

import selftime
from selftime.capture import handlers
from selftime.capture.facts.settings import compiler_facts
from selftime.errors import RecordingError, UsageError

_ENDLESS: Final = 10
"""Recordings of a schedule without an end until it is told: people compare a few, and whoever wants
a file every so often has then seen that each is written."""

_NOT_THE_USERS: Final = (
    *(f"{Path(place).parent}{os.sep}" for place in (str(torch.__file__), selftime.__file__)),
    str(inspect.getsourcefile(contextmanager)),
)
"""Where frames lie that a warning does not point to."""

_DEVICES: Final[dict[ProfilerActivity, Any]] = {
    ProfilerActivity.CUDA: torch.cuda,
    ProfilerActivity.XPU: torch.xpu,
}
"""Activities of devices that torch can be asked for, and the modules that tell."""


class TwoRecorders(RecordingError):  # noqa: N818 - says what was found, as its kin
    """Another recording is under way, and torch makes one at a time."""


def warn(text: str | Warning) -> None:
    """A warning that points to the innermost line that is neither torch's nor ours."""
    file, line, module = _users_place()
    registry = None if module is None else module.setdefault("__warningregistry__", {})
    name = None if module is None else module.get("__name__")
    kind = type(text) if isinstance(text, Warning) else UserWarning
    warnings.warn_explicit(text, kind, file, line, module=name, registry=registry)


def _users_place() -> tuple[str, int, dict[str, Any] | None]:
    """File, line and module of that line."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the frames that warnings walks
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    if frame is None:
        return "sys", 0, None
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals


def check_options(options: dict[str, Any]) -> None:
    """Look at a profiler's arguments before it is made; may repair them in place."""
    if options.get("with_modules") and not options.get("with_stack"):
        warn(
            "with_modules=True records nothing without with_stack=True, which was turned on; "
            "pass with_stack=True"
        )
        options["with_stack"] = True
    schedule, ready = options.get("schedule"), options.get("on_trace_ready")
    if schedule is not None and not callable(schedule):
        raise UsageError(
            f"`schedule` is a {type(schedule).__name__}, not a function of the step's number; pass "
            "selftime.schedule(wait=1, warmup=1, active=3, repeat=1)"
        )
    if ready is not None and not callable(ready):
        raise UsageError(
            f"`on_trace_ready` is a {type(ready).__name__}, and nothing that can be called; to "
            "write files into a folder, pass selftime.tensorboard_trace_handler('folder')"
        )
    if ready in {handlers.tensorboard_trace_handler, torch.profiler.tensorboard_trace_handler}:
        raise UsageError(
            "`on_trace_ready` is tensorboard_trace_handler itself, which writes nothing; call it: "
            "tensorboard_trace_handler('folder')"
        )
    if options.get("activities") is not None:
        options["activities"] = _checked_activities(options["activities"])


def _checked_activities(activities: Any) -> list[Any]:
    try:  # torch reads them twice, and an iterator gives nothing the second time
        items = list(activities)
    except TypeError:
        raise UsageError(f"`activities` is {activities}, not a list; pass [{activities}]") from None
    asked = {key for item in items for key in (item if isinstance(item, dict) else [item])}
    if ProfilerActivity.CPU in asked or not asked <= set(ProfilerActivity.__members__.values()):
        return items  # an item of another kind is refused by torch
    if asked and not any(map(_may_be_there, asked)):
        names = " and ".join(sorted(activity.name for activity in asked))
        raise UsageError(
            f"`activities` asks for {names} alone, and torch finds no such device; add "
            "ProfilerActivity.CPU, and ask `selftime doctor` why there is none"
        )
    if asked:
        warn(
            "`activities` leaves out ProfilerActivity.CPU: there will be no operators, no steps "
            "and no source lines; add it"
        )
    return items


def _may_be_there(activity: ProfilerActivity) -> bool:
    """Whether torch finds such a device; one that it cannot be asked for may be there."""
    return activity not in _DEVICES or bool(_DEVICES[activity].is_available())


def check_grouping(profile: Any, *, by_shape: bool, by_stack: bool) -> None:
    """Say so if a table is asked for by what was not recorded."""
    if by_shape and not (profile.record_shapes or profile.with_flops):
        warn(
            "group_by_input_shape=True has no shapes to group by; pass record_shapes=True to the "
            "profiler"
        )
    if by_stack and not profile.with_stack:
        warn("group_by_stack_n has no stacks to group by; pass with_stack=True to the profiler")


@dataclass(eq=False)
class Traps:
    """Those that open while one profiler runs."""

    attended: bool = True
    """Whether the program's own code runs the profiler: nobody else can do what is said."""
    _told: set[str] = field(default_factory=set)
    thread: int | None = None
    """The thread that began the recording, until it is stopped."""
    _ready: int = 0
    """Recordings that `on_trace_ready` was called with."""
    _within_callback: bool = False
    failed: BaseException | None = None
    """What `on_trace_ready` raised."""
    _files: dict[str, int] = field(default_factory=dict)
    """What `on_trace_ready` wrote, and of which recording."""
    pending: dict[str, str | Warning] = field(default_factory=dict)
    """What is told as soon as torch is done: a warning may be an error."""
    _graphs: int = 0
    _began: tuple[str, int] = ("sys", 0)
    """The line of the program that began the recording."""

    def tell(self, key: str, text: str | Warning) -> None:
        """Once for each profiler."""
        if self.attended and key not in self._told:
            self._told.add(key)
            warn(text)

    def before_prepare(self) -> None:
        """Torch would begin a second recording and drop the first: raise before it does."""
        if _is_taken_from(self):
            gc.collect()  # the other may be lost: torch's profiler refers to itself
        if _is_taken_from(self):
            raise TwoRecorders(
                "another selftime.profile records now, and only one can at a time; stop it first"
            )
        ours = _recording is not None and _recording[1] == os.getpid()
        if not ours and _torchs_runs() and self.attended:
            raise TwoRecorders(
                "another profiler of torch records now, and only one can at a time; stop it first"
            )

    @contextmanager
    def torchs_warnings(self) -> Iterator[None]:
        """Keep what torch warns of until it is done.

        A warning that is an error would leave torch half prepared, and stopping it then crashes.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            if issubclass(
                warning.category, UserWarning | FutureWarning
            ):  # the others are for torch
                self.pending[str(warning.message)] = warning.message

    def after_prepare(self) -> None:
        """From now on until its end this recording is the one under way."""
        global _recording  # noqa: PLW0603 - a process has one recorder
        _recording = (weakref.ref(self), os.getpid())
        self._began = _users_place()[:2]

    def before_record(self) -> None:
        self._graphs = _graphs()

    def after_start(self) -> None:
        """Where all threads are recorded as one, torch has no recorder for this one."""
        self.thread = threading.get_ident() if _profiler_enabled() else None

    def before_stop(self) -> bool:
        """Whether the recording seems to be ours still."""
        return _torchs_runs()

    def stopping(self, stop: Callable[[], None]) -> None:
        """Stop the recording; whatever comes of that, it is none under way."""
        global _recording  # noqa: PLW0603 - a process has one recorder
        try:
            stop()
        finally:
            self.thread = _recording = None

    def after_stop(self, profile: Any, *, ours: bool) -> None:
        """The recording has ended: what is wrong with it? It is told when torch is done."""
        if not ours and not profile.profiler.kineto_results.events():
            self.pending["taken"] = (
                "the recording is empty: another profiler began within it, and torch keeps one at "
                "a time; leave one of them out"
            )
        compiled = _graphs() - self._graphs
        if compiled > 0:
            what = "a graph" if compiled == 1 else f"{compiled} graphs"
            self.pending["compiled"] = (
                f"torch.compile compiled {what} while it was recorded, which is most of that time; "
                "let it compile before: run a few steps first, or raise `wait` of the schedule"
            )

    def check_thread(self, called: str) -> None:
        """Torch keeps a recording for the thread that began it, and loses it in another."""
        if self.thread not in {None, threading.get_ident()}:
            raise RecordingError(
                f"prof.{called}() is called in another thread than the one that began to record; "
                "call start(), step() and stop() in the same"
            )

    def ends_here(self) -> bool:
        """The program ends within the recording: whether this thread may end that, too."""
        if self.attended:
            warnings.warn_explicit(
                "the profiler was still running when the program ended, and what it recorded is "
                "lost; call prof.stop(), or use it in a `with` block",
                UserWarning,
                *self._began,
            )
        return self.thread == threading.get_ident()

    @contextmanager
    def callback(self, schedule: Any) -> Iterator[None]:
        """`on_trace_ready` runs: what it raises waits until torch has done the rest.

        Otherwise torch goes on with a recorder that was never prepared, and crashes.
        """
        self._ready += 1
        if self._ready == _ENDLESS and _terms(schedule).get("repeat") == 0:
            self.tell(
                "endless",
                f"on_trace_ready is called for the {_ENDLESS}th time, and the schedule has no end; "
                "pass repeat=1 to record once",
            )
        self._within_callback = True
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - it is raised a moment later
            self.failed = error
        finally:
            self._within_callback = False

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Raise at the end what `on_trace_ready` raised within, and tell what was found."""
        try:
            yield
        finally:
            self.raise_failed()
        self.tell_pending()

    def raise_failed(self) -> None:
        """Raise what `on_trace_ready` raised."""
        failed, self.failed = self.failed, None
        if failed is not None:
            raise failed

    def tell_pending(self) -> None:
        """Tell what was found while torch was at work."""
        while self.pending:
            self.tell(*self.pending.popitem())

    def file_written(self, path: str | os.PathLike[str], recording: int) -> None:
        """Each recording of a schedule is written, and a fixed name keeps the last of them."""
        if not self._within_callback:
            return
        name = os.path.abspath(path)  # noqa: PTH100 - a link is a name of its own
        if self._files.setdefault(name, recording) != recording:
            self.tell(
                "overwritten",
                f"`{os.fspath(path)}` is written over by a later recording; put prof.step_num in "
                "its name, or pass repeat=1 to the schedule",
            )

    def unread(self, profile: Any) -> RecordingError:
        """Why there is nothing to read yet."""
        if profile.running and profile.current_action != ProfilerAction.NONE:
            return RecordingError(
                "the recording has not ended; read from it after the `with` block or prof.stop(), "
                "or in on_trace_ready"
            )
        return RecordingError(
            "nothing has been recorded; start the profiler, and stop it before you read from it"
        )

    def never_recorded(self, profile: Any) -> None:
        """The run was shorter than the schedule."""
        steps = "prof.step() was never called; call it at the end of each step"
        if profile.step_num:
            calls = "1 call" if profile.step_num == 1 else f"{profile.step_num} calls"
            first = _first_recorded(profile.schedule)
            begins = "" if first is None else f", and begins to record after {first}"
            steps = (
                f"the schedule was still waiting after {calls} of prof.step(){begins}; shorten its "
                "wait, warmup or skip_first"
            )
        self.tell("never", f"nothing was recorded: {steps}")

    def cut_short(self, profile: Any, steps: int) -> None:
        """The run ended within a recording; one that repeats without end always does."""
        terms = _terms(profile.schedule)
        asked = terms.get("active")
        if asked is None or steps >= asked or (not terms.get("repeat") and self._ready > 1):
            return
        self.tell(
            "cut",
            f"the recording was stopped after {steps} of its {asked} steps; call prof.step() at "
            "the end of each step, the last one too, or shorten the schedule",
        )


_recording: tuple[weakref.ref[Traps], int] | None = None
"""Whose recording is under way, and in which process: a forked child has none.

Its owner may be gone without an end; then the next recording takes its place.
"""


def _is_taken_from(traps: Traps) -> bool:
    """Whether a recording is under way in this process that somebody else can still end."""
    if _recording is None or _recording[1] != os.getpid():
        return False
    owner = _recording[0]()
    return owner is not None and owner is not traps and owner.attended


def _end_with_the_program() -> None:
    """Torch crashes where Python ends while a recording is under way."""
    if _recording is None or _recording[1] != os.getpid() or not _torchs_runs():
        return
    owner = _recording[0]()
    if owner is None or owner.ends_here():
        _disable_profiler()


atexit.register(_end_with_the_program)


def _torchs_runs() -> bool:
    """Whether any of torch's profilers is on, as torch itself remembers it."""
    return bool(autograd_profiler._is_profiler_enabled)  # noqa: SLF001 - torch tells it nowhere else


def _graphs() -> int:
    facts = compiler_facts()
    return 0 if facts is None else int(facts["graphs"])


def _terms(schedule: Any) -> dict[str, int]:
    """What `schedule(...)` was given; nothing of a function that the program wrote itself."""
    if getattr(schedule, "__qualname__", "") != "schedule.<locals>.schedule_fn":
        return {}
    return dict(inspect.getclosurevars(schedule).nonlocals)


def _first_recorded(schedule: Any) -> int | None:
    """Calls of `step()` until a recording begins."""
    terms = _terms(schedule)
    if not terms:
        return None
    waits = 0 if terms.get("skip_first_wait") else terms["wait"]
    return terms["skip_first"] + waits + terms["warmup"]
