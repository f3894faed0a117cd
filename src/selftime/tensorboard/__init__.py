"""The page as a tab of TensorBoard: a dynamic plugin, found by its entry point.

TensorBoard loads every plugin that is installed, whatever its logdir holds, and ends with the first
one that fails to import. So this part loads nothing but itself until somebody opens the tab:

    plugin      what TensorBoard asks a plugin for
    logdirs     which folders it was started with, and how their runs are called
    scan        what is in a folder: a walk that remembers what did not change
    watch       the walk on a thread of its own, when somebody asks
    sources     the traces found, as the page's server wants them
    mount       the server below the address of a plugin
"""

from selftime.tensorboard.plugin import Loader

__all__ = ["Loader"]
