"""Lightning, where it is imported as `lightning`: a callback and a profiler."""

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.profilers import Profiler

from selftime.frameworks.trainers import Actions, Hooks


class SelftimeCallback(Hooks, Callback):
    """`Trainer(callbacks=[SelftimeCallback()])` records a few steady steps of each run."""


class SelftimeProfiler(Actions, Profiler):
    """`Trainer(profiler=SelftimeProfiler())` does so too, with Lightning's actions by name."""
