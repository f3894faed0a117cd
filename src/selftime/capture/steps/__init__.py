"""Finds a program's steps without a word in the program: its own rhythm tells.

A step ends when all optimizers that take part have stepped. A program that updates its parameters
itself steps with its backward passes, one that only infers with the outermost calls of a module
that is called again from the same place, and one that calls no module with each batch of a
DataLoader. torch's own entry points are wrapped for that, and unwrapped as soon as they have
nothing more to tell.
"""

from selftime.capture.steps.source import Source
from selftime.capture.steps.watch import Steps

__all__ = ["Source", "Steps"]
