"""Provides a callback and a profiler for Lightning, for programs that import `lightning`."""

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.profilers import Profiler

from selftime.frameworks.lightning_hooks import ActionProfiler, TrainerHooks


class SelftimeCallback(TrainerHooks, Callback):
    """Callback for `Trainer(callbacks=[...])` that records a few steps of each trainer run."""


class SelftimeProfiler(ActionProfiler, Profiler):
    """A profiler for `Trainer(profiler=...)` that records steps and Lightning's action names."""
