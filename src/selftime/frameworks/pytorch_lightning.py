"""Provides a callback and a profiler for programs that import `pytorch_lightning`."""

from pytorch_lightning.callbacks import Callback
from pytorch_lightning.profilers import Profiler

from selftime.frameworks.lightning_hooks import ActionProfiler, TrainerHooks


class SelftimeCallback(TrainerHooks, Callback):
    """Callback for `Trainer(callbacks=[...])` that records a few steps of each trainer run."""


class SelftimeProfiler(ActionProfiler, Profiler):
    """A profiler for `Trainer(profiler=...)` that records steps and Lightning's action names."""
