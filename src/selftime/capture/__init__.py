"""Recording: the only package that imports torch."""

from selftime.capture.profile import Profile
from selftime.capture.schedule import (
    ProfilerAction,
    ProfilerActivity,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

__all__ = [
    "Profile",
    "ProfilerAction",
    "ProfilerActivity",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]
