"""Waits in a process of a recorded program until it imports torch; then starts to record.

Nothing but `selftime_early_log` is imported before, since most processes never import torch. A
module of selftime may be what imports torch, when it is too late to prepare: so the import of
selftime also prepares.
"""

import os
import sys

TYPE_CHECKING = False  # for type checkers; `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _TorchImportWatcher:
    """Meta path finder that detects the import of torch or of selftime."""

    def __init__(self) -> None:
        self._asking = False
        """Whether this finder is now asking the other finders for selftime."""

    def find_spec(
        self,
        fullname: str,
        _path: "Sequence[str] | None" = None,
        _target: "ModuleType | None" = None,
    ) -> "ModuleSpec | None":
        if fullname == "selftime" and not self._asking:
            return self._selftime_spec_with_preparation()
        if fullname != "torch" or not _start_recorders_import_watch():
            return None
        from importlib.util import find_spec  # noqa: PLC0415 - not at startup

        return find_spec(fullname)

    def _selftime_spec_with_preparation(self) -> "ModuleSpec | None":
        """Returns selftime's import spec, changed so that its import starts recording."""
        from importlib.util import find_spec  # noqa: PLC0415 - not at startup

        self._asking = True
        try:
            spec = find_spec("selftime")
        finally:
            self._asking = False
        if spec is None or spec.loader is None:
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            vars(loader).pop("exec_module", None)  # restores the class's method
            execute(module)
            _start_recorders_import_watch()

        loader.exec_module = exec_module  # type: ignore[method-assign]  # on this loader only
        return spec


_finder = _TorchImportWatcher()


def stop_import_watch() -> bool:
    """Stops watching imports; returns whether they were being watched."""
    watching = _finder in sys.meta_path
    if watching:
        sys.meta_path.remove(_finder)
    return watching


def _start_recorders_import_watch() -> bool:
    """Makes selftime record at torch's import; returns False if selftime cannot be imported."""
    if not stop_import_watch():
        return False
    early_log = getattr(sys.modules.get("selftime_early_log"), "early_log", None)
    if early_log is not None:
        early_log.stop()  # what follows is selftime's own work
    try:
        from selftime.capture.program.attachment import record_or_time_this_process  # noqa: PLC0415 - not at startup
    except ImportError as error:  # another Python, with other packages
        _report_import_error(error)
        return False
    record_or_time_this_process()
    return True


def _report_import_error(error: ImportError) -> None:
    """Reports to `selftime run` that this process cannot be recorded."""
    import json  # noqa: PLC0415 - not at startup
    from pathlib import Path  # noqa: PLC0415 - likewise

    try:
        folder = json.loads(os.environ["SELFTIME_RUN"])["folder"]
        report = {"reason": f"`{sys.executable}` cannot import selftime: {error}"}
        Path(folder).mkdir(mode=0o700, exist_ok=True)
        path = Path(folder, f"{os.getpid()}.tmp")
        path.write_text(json.dumps(report), encoding="utf-8")
        path.replace(path.with_suffix(".json"))
    except (OSError, KeyError, ValueError):  # no run reads the report
        pass


if __name__ == "selftime_startup":
    sys.meta_path.insert(0, _finder)
    if '"options"' in os.environ["SELFTIME_RUN"]:  # else only the steps are to be timed
        import selftime_early_log  # type: ignore[import-not-found]  # noqa: F401 - its use
