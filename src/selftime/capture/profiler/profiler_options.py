"""Checks the arguments for torch's profiler, and creates its `experimental_config`.

The configuration turns on events of the garbage collector and of waits for a device, and the
overload names of operators, where this version of PyTorch has them.
"""

import inspect
from typing import Any, Final

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity

from selftime.capture.profiler.user_warnings import warn_at_user_line
from selftime.capture.trace_file import trace_handlers
from selftime.errors import UsageError

_PARAMETERS_OF_TORCHS_TABLE: Final = frozenset(
    inspect.signature(torch.profiler.profile.key_averages).parameters
)

HAS_OPTION_FOR_PYTHON_FUNCTIONS: Final = "include_python_functions" in _PARAMETERS_OF_TORCHS_TABLE
"""Whether torch's `key_averages` leaves Python functions out unless it is asked for them, which it
does since 2.14."""

GARBAGE_COLLECTION_OPTION: Final = "record_python_gc_info"

_TORCH_MODULE_BY_DEVICE_ACTIVITY: Final[dict[ProfilerActivity, Any]] = {
    ProfilerActivity.CUDA: torch.cuda,
    ProfilerActivity.XPU: torch.xpu,
}
"""Maps a profiler activity, such as CUDA, to the torch module whose `is_available` checks for
the device."""


def check_profiler_options(options: dict[str, Any]) -> None:
    """Checks a profiler's arguments, raises an error for wrong ones, and may correct others.

    Raises:
        UsageError: An argument is invalid.
    """
    if options.get("with_modules") and not options.get("with_stack"):
        warn_at_user_line(
            "with_modules=True records nothing without with_stack=True, which was turned on; "
            "pass with_stack=True"
        )
        options["with_stack"] = True
    schedule, ready = options.get("schedule"), options.get("on_trace_ready")
    if schedule is not None and not callable(schedule):
        raise UsageError(
            f"`schedule` is a {type(schedule).__name__}, not a function of the step's number; pass "
            "selftime.schedule(wait=1, warmup=1, active=3, repeat=1)"
        )
    if ready is not None and not callable(ready):
        raise UsageError(
            f"`on_trace_ready` is a {type(ready).__name__}, and nothing that can be called; to "
            "write files into a folder, pass selftime.tensorboard_trace_handler('folder')"
        )
    if ready in {
        trace_handlers.tensorboard_trace_handler,
        torch.profiler.tensorboard_trace_handler,
    }:
        raise UsageError(
            "`on_trace_ready` is tensorboard_trace_handler itself, which writes nothing; call it: "
            "tensorboard_trace_handler('folder')"
        )
    if options.get("activities") is not None:
        options["activities"] = _checked_profiler_activities(options["activities"])


def _checked_profiler_activities(activities: Any) -> list[Any]:
    try:  # torch iterates twice, which an iterator does not support
        items = list(activities)
    except TypeError:
        raise UsageError(f"`activities` is {activities}, not a list; pass [{activities}]") from None
    asked = {key for item in items for key in (item if isinstance(item, dict) else [item])}
    if ProfilerActivity.CPU in asked or not asked <= set(ProfilerActivity.__members__.values()):
        return items  # torch rejects items of another type
    if asked and not any(map(_may_activity_be_available, asked)):
        names = " and ".join(sorted(activity.name for activity in asked))
        raise UsageError(
            f"`activities` asks for {names} alone, and torch finds no such device; add "
            "ProfilerActivity.CPU, and ask `selftime doctor` why there is none"
        )
    if asked:
        warn_at_user_line(
            "`activities` leaves out ProfilerActivity.CPU: there will be no operators, no steps "
            "and no source lines; add it"
        )
    return items


def _may_activity_be_available(activity: ProfilerActivity) -> bool:
    """Returns False if torch finds no device of a profiler activity's type, else True."""
    return activity not in _TORCH_MODULE_BY_DEVICE_ACTIVITY or bool(
        _TORCH_MODULE_BY_DEVICE_ACTIVITY[activity].is_available()
    )


def check_table_grouping(profile: Any, *, by_shape: bool, by_stack: bool) -> None:
    """Warns if a table is to be grouped by shapes or stacks that were not recorded."""
    if by_shape and not (profile.record_shapes or profile.with_flops):
        warn_at_user_line(
            "group_by_input_shape=True has no shapes to group by; pass record_shapes=True to the "
            "profiler"
        )
    if by_stack and not profile.with_stack:
        warn_at_user_line(
            "group_by_stack_n has no stacks to group by; pass with_stack=True to the profiler"
        )


def torchs_table_options(by_overload: bool, has_python_functions: bool | None) -> dict[str, bool]:
    """Returns the arguments for torch's `key_averages`, without those that this torch lacks."""
    options = {
        "group_by_overload_name": by_overload,
        "include_python_functions": bool(has_python_functions),
    }
    return {name: options[name] for name in options.keys() & _PARAMETERS_OF_TORCHS_TABLE}


def option_flags(profile: Any) -> dict[str, bool | None]:
    """Returns which options a profiler has, by name."""
    return {
        "record_shapes": profile.record_shapes or profile.with_flops,
        "profile_memory": profile.profile_memory,
        "with_stack": profile.with_stack,
        "with_flops": profile.with_flops,
        "with_modules": profile.with_modules,
        GARBAGE_COLLECTION_OPTION: profile.with_stack
        and records_garbage_collection(profile.experimental_config),
    }


def profiler_config_with_all_events(*, frames: bool) -> Any:
    """Returns a profiler configuration that records all optional kinds of events.

    Garbage collections are recorded as Python events, so only together with `frames`.
    """
    wanted: dict[str, Any] = {
        "enable_cuda_sync_events": True,
        "capture_overload_names": True,
        GARBAGE_COLLECTION_OPTION: frames,
    }
    return _ExperimentalConfig(
        **{
            name: is_on
            for name, is_on in wanted.items()
            if is_on and is_config_option_supported(name)
        }
    )


def records_garbage_collection(config: Any) -> bool | None:
    """Returns whether a profiler configuration records garbage collections; None if unknown.

    The configuration has no attribute for the option, so the position in its pickled state that the
    option changes is read.
    """
    if config is None or not is_config_option_supported(GARBAGE_COLLECTION_OPTION):
        return False
    options: dict[str, Any] = {GARBAGE_COLLECTION_OPTION: True}
    default, with_option = (
        _picklable_state_of_config(_ExperimentalConfig()),
        _picklable_state_of_config(_ExperimentalConfig(**options)),
    )
    changed_indices = [index for index, value in enumerate(default) if value != with_option[index]]
    return (
        bool(_picklable_state_of_config(config)[changed_indices[0]])
        if len(changed_indices) == 1
        else None
    )


def is_config_option_supported(name: str) -> bool:
    # The signature of a C++ function is in its docstring only.
    return name in (_ExperimentalConfig.__init__.__doc__ or "")


def _picklable_state_of_config(config: Any) -> tuple[Any, ...]:
    state: tuple[Any, ...] = config.__getstate__()
    return state
