"""TensorBoard plugin that shows selftime's web page in a tab; found by its entry point.

TensorBoard loads every installed plugin, whatever its logdir holds, and exits if one fails to
import. So this package imports only itself until somebody opens the tab:

    plugin            the plugin's interface to TensorBoard
    logdirs           the folders that TensorBoard was started with, and the names of their runs
    logdir_watch      finds traces below a folder, in a background thread
    plugin_requests   the page's server below the plugin's address
"""

from selftime.tensorboard.plugin import Loader

__all__ = ["Loader"]
