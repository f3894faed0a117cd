"""Tells TensorBoard whether to show selftime's tab, and which function answers its requests."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from tensorboard.plugins import base_plugin

from selftime.tensorboard.logdir_watch import LogdirWatch
from selftime.tensorboard.logdirs import logdirs
from selftime.tensorboard.plugin_requests import ENTRY_JAVASCRIPT_FILE, PluginRequestHandler

_TAB_NAME: Final = "selftime"
"""Name of selftime's tab in TensorBoard and in the plugin's URLs."""
_MAX_WAIT_IN_FIRST_IS_ACTIVE_S: Final = 0.5
"""Longest time in seconds that TensorBoard's first query for active tabs waits for the search."""
_MAX_WAIT_IN_LATER_IS_ACTIVE_S: Final = 0.1
"""Longest time in seconds that later queries for active tabs wait for the search."""
_LOOPBACK_HOSTS: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})
"""Host names on which TensorBoard cannot be reached from other machines."""

_log: Final = logging.getLogger(__name__)

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Plugin(base_plugin.TBPlugin):  # type: ignore[misc]  # TensorBoard is untyped
    """selftime's tab in TensorBoard; it appears when a trace has been found."""

    plugin_name = _TAB_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        super().__init__(context)
        self._max_wait_s = _MAX_WAIT_IN_FIRST_IS_ACTIVE_S
        self._watches = [LogdirWatch(folder) for folder in logdirs(context)]
        self._mount = PluginRequestHandler(
            self._watches,
            url_prefix=f"/data/plugin/{_TAB_NAME}",
            shows_source=_is_tensorboard_on_loopback_only(context.flags),
        )
        for watch in self._watches:
            watch.request_search()  # TensorBoard itself takes longer to start

    def get_plugin_apps(self) -> dict[str, WSGI]:
        return {"/*": self._mount}

    def is_active(self) -> bool:
        """Returns whether a trace has been found, so that TensorBoard shows the tab."""
        for watch in self._watches:
            watch.request_search()
        deadline = time.monotonic() + self._max_wait_s
        self._max_wait_s = _MAX_WAIT_IN_LATER_IS_ACTIVE_S
        return any(
            watch.found_traces(max_wait_s=max(0.0, deadline - time.monotonic()))
            for watch in self._watches
        )

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(
            es_module_path=f"/{ENTRY_JAVASCRIPT_FILE}", tab_name=_TAB_NAME, disable_reload=True
        )


class Loader(base_plugin.TBLoader):  # type: ignore[misc]  # TensorBoard is untyped
    """Creates the plugin; if that fails, TensorBoard continues without the plugin."""

    def load(self, context: base_plugin.TBContext) -> Plugin | None:
        try:
            return Plugin(context)
        except Exception:  # noqa: BLE001 - whatever it is, TensorBoard goes on
            _log.exception("TensorBoard runs without the tab of selftime")
            return None


def _is_tensorboard_on_loopback_only(flags: Any) -> bool:
    """Returns whether only this machine can reach TensorBoard, which requires no password."""
    host = getattr(flags, "host", None) or ""
    return host in _LOOPBACK_HOSTS and not getattr(flags, "bind_all", False)
