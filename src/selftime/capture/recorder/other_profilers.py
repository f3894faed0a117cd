"""Makes way for what cannot go beside a recording: the program's own profiler, swaps of tensors.

A recording holds weak references to all tensors whose shapes or parameters it has, until it is
deleted. torch cannot swap such a tensor, as `nn.Module.to_empty` does with sharded parameters:
it would end the program.

Only one profiler can run at a time, and the program's goes first. What it recorded is kept in case
selftime can record nothing itself: the file that the program exports, else its results.
"""

import functools
import gc
import shutil
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from isal import igzip
from torch.autograd import profiler
from torch.profiler import profiler as torch_profiler

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.facts.machine import rank_and_world
from selftime.capture.facts.process import process_facts
from selftime.capture.temporary_folders import folder_prefix
from selftime.capture.trace_file import trace_files

if TYPE_CHECKING:
    from selftime.capture.recorder.recorder import Recorder

OWN_PROFILER: Final = "the program's own profiler"
SWAPS: Final = "a swap of tensors"


def watch_other_profilers(yield_to: Callable[[str], object]) -> Callable[[], None]:
    """Makes torch call `yield_to` with a profiler's name before that profiler starts.

    Returns the function that ends this.
    """
    watch = OtherProfilers(yield_to)
    watch.attach()
    return watch.detach


class OtherProfilers:
    """The profilers of torch that the program itself starts, and what the last one recorded."""

    def __init__(
        self, yield_to: Callable[[str], object], recorder: "Recorder | None" = None
    ) -> None:
        """Makes a watch.

        Args:
            yield_to: Called before a profiler starts; returns False if it is selftime's own.
            recorder: What selftime records; None: nothing.
        """
        self._yield_to = yield_to
        self._recorder = recorder
        self._patches = AttributePatches()
        self._is_watching = False
        self._active: weakref.WeakSet[Any] = weakref.WeakSet()
        self._results: Any = None
        """What torch holds of the last recording; None if there is none."""
        self._exported: Path | None = None
        """The file that the program wrote of it."""

    @property
    def is_active(self) -> bool:
        """Returns whether the program has prepared or started a profiler that has not stopped."""
        return bool(self._active)

    def attach(self) -> None:
        """Begins to watch."""
        self._is_watching = True
        # `_prepare_trace` is called at the start of every recording, `__exit__` at its end.
        self._patches.wrap_attribute(profiler.profile, "_prepare_trace", self._wrap_prepare)
        self._patches.wrap_attribute(profiler.profile, "__exit__", self._wrap_exit)
        self._patches.wrap_attribute(torch_profiler.profile, "step", self._wrap_step)
        for kind in (profiler.profile, torch_profiler._KinetoProfile):  # noqa: SLF001 - the base of torch's profiler
            self._patches.wrap_attribute(kind, "export_chrome_trace", self._wrap_export)
        self._patches.wrap_attribute(torch._C, "_swap_tensor_impl", self._wrap_swap)  # noqa: SLF001 - what all swaps call

    def detach(self) -> None:
        """Ends the watch; a wrapper that cannot be removed only calls the original."""
        self._is_watching = False
        self._patches.restore_all()

    def forget_results(self) -> None:
        """Drops what a profiler of the program recorded, so that its memory can be freed."""
        self._results = self._exported = None

    def write_results(self, folder: Path, ledger: str | None) -> Path | None:
        """Writes what the program's profiler recorded; returns the file, None if there is nothing.

        Raises:
            OSError: A file cannot be read or written.
            RecordingError: Likewise.
        """
        if self._results is None and self._exported is None:
            return None
        with tempfile.TemporaryDirectory(prefix=folder_prefix()) as temporary:
            body = Path(temporary, "trace.json")
            if not self._write_body(body):
                return None
            trace_files.make_trace_folder(folder)
            rank, _ = rank_and_world()
            path = trace_files.unused_trace_path(folder, trace_files.trace_file_name(rank))
            facts = {**process_facts(), "ledger": ledger, "partial": None}
            trace_files.write_trace_with_facts(body, path, facts)
        self.forget_results()
        return path

    def _write_body(self, body: Path) -> bool:
        """Writes the JSON of torch's profiler; returns whether there is any."""
        if self._results is not None:
            with suppress(RuntimeError):  # torch can write it once, and the program has
                self._results.save(str(body))
        exported = self._exported
        if body.exists() or exported is None or not exported.exists():
            return body.exists()
        opener: Any = igzip.open if exported.suffix == ".gz" else open
        with opener(exported, "rb") as source, body.open("wb") as target:
            shutil.copyfileobj(source, target)
        return True

    def _wrap_prepare(self, prepare: Any) -> Any:
        @functools.wraps(prepare)
        def prepare_trace(profile: Any) -> None:
            if self._is_watching and self._yield_to(OWN_PROFILER):
                self._active.add(profile)
            prepare(profile)

        return prepare_trace

    def _wrap_exit(self, exit_: Any) -> Any:
        @functools.wraps(exit_)
        def stop(profile: Any, *error: Any) -> Any:
            try:
                return exit_(profile, *error)
            finally:
                if profile in self._active:
                    self._active.discard(profile)
                    self._results, self._exported = profile.kineto_results, None

        return stop

    def _wrap_step(self, step: Any) -> Any:
        """Keeps step annotations of a profiler that is not yet active out of our recording."""

        @functools.wraps(step)
        def step_without_annotation(profile: Any) -> Any:
            is_recording = self._recorder is not None and self._recorder.recording
            if not self._is_watching or profile in self._active or not is_recording:
                return step(profile)
            marked, profile.record_steps = profile.record_steps, False
            try:
                return step(profile)
            finally:
                profile.record_steps = marked

        return step_without_annotation

    def _wrap_export(self, export: Any) -> Any:
        @functools.wraps(export)
        def export_chrome_trace(profile: Any, path: str, *args: Any, **options: Any) -> Any:
            result = export(profile, path, *args, **options)
            if self._is_watching and self._is_last_recording(profile):
                with suppress(OSError, TypeError):  # the working folder is gone
                    self._exported = Path(path).absolute()
            return result

        return export_chrome_trace

    def _wrap_swap(self, swap: Any) -> Any:
        @functools.wraps(swap)
        def swap_tensor_impl(one: Any, other: Any) -> Any:
            if self._is_watching and self._recorder is not None and _may_hold(self._recorder):
                self._recorder.pause_for_profiler(SWAPS)
                gc.collect()  # what was recorded is in a reference cycle of torch's profiler
            return swap(one, other)

        return swap_tensor_impl

    def _is_last_recording(self, profile: Any) -> bool:
        """Returns whether a profiler holds the results that were recorded last."""
        inner = getattr(profile, "profiler", None) or profile
        return self._results is not None and getattr(inner, "kineto_results", None) is self._results


def _may_hold(recorder: "Recorder") -> bool:
    """Returns whether a recording that is made, kept or being written may refer to tensors."""
    state = recorder.state_as_json()
    return bool(recorder.recording or state["recording"] or state["writing"])
