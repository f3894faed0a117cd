"""The plugin's interface to TensorBoard: whether there is a trace, and its request handlers."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from tensorboard.plugins import base_plugin

from selftime.tensorboard.logdirs import logdirs
from selftime.tensorboard.mount import ENTRY, Mount
from selftime.tensorboard.watch import Watch

_NAME: Final = "selftime"
"""The tab's name, which is part of every address."""
_PATIENCE_S: Final = 0.5
"""Seconds that the first list of tabs may wait for the folders to be searched."""
_LATER_S: Final = 0.1
"""Seconds for later lists: without a wait they would show an outdated state."""
_LOOPBACK: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})

_log: Final = logging.getLogger(__name__)

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Plugin(base_plugin.TBPlugin):  # type: ignore[misc]  # TensorBoard is untyped
    """The tab, which appears once there is a trace."""

    plugin_name = _NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        super().__init__(context)
        self._patience = _PATIENCE_S
        self._watches = [Watch(folder) for folder in logdirs(context)]
        self._mount = Mount(
            self._watches,
            prefix=f"/data/plugin/{_NAME}",
            shows_source=_is_private(context.flags),
        )
        for watch in self._watches:
            watch.ask()  # TensorBoard itself takes longer to start

    def get_plugin_apps(self) -> dict[str, WSGI]:
        return {"/*": self._mount}

    def is_active(self) -> bool:
        for watch in self._watches:
            watch.ask()
        until = time.monotonic() + self._patience
        self._patience = _LATER_S
        return any(watch.found(wait=max(0.0, until - time.monotonic())) for watch in self._watches)

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(
            es_module_path=f"/{ENTRY}", tab_name=_NAME, disable_reload=True
        )


class Loader(base_plugin.TBLoader):  # type: ignore[misc]  # TensorBoard is untyped
    """Creates the plugin; TensorBoard continues without it if that fails."""

    def load(self, context: base_plugin.TBContext) -> Plugin | None:
        try:
            return Plugin(context)
        except Exception:  # noqa: BLE001 - whatever it is, TensorBoard goes on
            _log.exception("TensorBoard runs without the tab of selftime")
            return None


def _is_private(flags: Any) -> bool:
    """Returns whether only this machine can reach TensorBoard, which has no passwords."""
    host = getattr(flags, "host", None) or ""
    return host in _LOOPBACK and not getattr(flags, "bind_all", False)
