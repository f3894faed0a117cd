"""Replaces internal functions of torch that would otherwise ignore the simulated device."""

# ruff: noqa: SLF001 - torch has no public name for these internals

import functools
import os
import sys
import warnings
from functools import cache
from typing import Any, Final

import torch
from torch import serialization
from torch.autograd.graph import saved_tensors_hooks
from torch.jit import _builtins
from torch.overrides import _get_current_function_mode_stack
from torch.storage import _StorageBase

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.preflight import fixes
from selftime.capture.preflight.function_mode import (
    SIMULATED_DEVICE,
    PreflightFunctionMode,
    is_fake_device,
)
from selftime.capture.preflight.locations import LOCATION_ATTRIBUTE, TensorLocation, is_on_device
from selftime.capture.preflight.reporter import WaitReporter

_PREFLIGHT_FOLDER: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - text, as frames have it
_TORCH_FUNCTION_OVERRIDE_CHECKS: Final = (
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
)
_PRIORITY_OF_LOADED_STORAGE_HANDLER: Final = 5
"""Priority of selftime's handler for `torch.load`; handlers with lower numbers run first,
torch's own begin at 10."""


def replace_torch_internals(patches: AttributePatches, reporter: WaitReporter) -> None:
    _keep_modes_in_python_functions(patches)
    _report_tensor_printing(patches, reporter)
    _keep_location_of_copied_storages(patches, reporter)
    _group_tensors_by_simulated_device(patches)
    _enable_cpu_autocast(patches)
    _report_save_and_load(patches, reporter)
    _keep_modes_in_saved_tensor_hooks(patches, reporter)
    # DataParallel scatters a tensor to all devices: here there is one.
    patches.replace_attribute(
        torch._C, "_scatter", lambda tensor, *_: (tensor.to(SIMULATED_DEVICE, non_blocking=True),)
    )
    # It checks the type of its stream before it calls a mode.
    patches.replace_attribute(torch.Tensor, "record_stream", lambda _tensor, _stream: None)
    _show_warnings_at_user_line(patches, reporter)
    patches.wrap_attribute(torch, "Generator", _generator_type_for_simulated_device)
    patches.wrap_attribute(torch._C._nn, "_parse_to", _parser_that_accepts_device_number)


def _keep_modes_in_python_functions(patches: AttributePatches) -> None:
    """Keeps the function mode active inside torch functions that are written in Python.

    Such a function calls `has_torch_function` and, if a mode is active, calls the mode, which runs
    it with the mode disabled: the mode would not see what it calls. Therefore these checks ignore
    modes, and the mode sees the C++ functions that are called. Classes with a `__torch_function__`
    of their own are still found.
    """
    for module in [m for name, m in sys.modules.items() if name.startswith("torch")]:
        for name in _TORCH_FUNCTION_OVERRIDE_CHECKS:
            original = vars(module).get(name)
            if original is not None and original is getattr(torch._C, "_" + name, original):
                check = _override_check_that_ignores_modes(name)
                _compile_as_builtin(check, original)
                patches.replace_attribute(module, name, check)


def _compile_as_builtin(function: Any, original: Any) -> None:
    """Makes TorchScript compile a function as the builtin function that it stands for."""
    builtin = _builtins._find_builtin(original)  # type: ignore[no-untyped-call]  # torch's own
    if builtin is not None:
        _builtins._register_builtin(function, builtin)


@cache  # TorchScript knows a function by its `id`, so it lives as long as the process
def _override_check_that_ignores_modes(name: str) -> Any:
    plain = (torch.Tensor.__torch_function__, torch._C._disabled_torch_function_impl)

    def has_own_override(value: Any) -> bool:
        override = getattr(type(value), "__torch_function__", None)
        return override is not None and not any(
            getattr(override, "__func__", override) is getattr(p, "__func__", p) for p in plain
        )

    if name == "has_torch_function":
        return lambda values: any(map(has_own_override, values))
    if name == "has_torch_function_unary":
        return has_own_override
    return lambda *values: any(map(has_own_override, values))


def _parser_that_accepts_device_number(original: Any) -> Any:
    """Returns a parser of `Tensor.to` arguments that also accepts a device number: `x.to(0)`."""

    def parse_to(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            args = (torch.device("cuda", args[0]), *args[1:])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = torch.device("cuda", kwargs["device"])
        return original(*args, **kwargs)

    return parse_to


def _report_tensor_printing(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Reports a wait if the program prints a tensor on the simulated device."""

    def make_wrapper(original: Any) -> Any:
        @functools.wraps(original)
        def repr_with_report(tensor: torch.Tensor, **kwargs: Any) -> str:
            if not reporter.is_disabled and is_on_device(tensor):
                reporter.report_wait("Tensor.__repr__", "sync", fixes.FIX_FOR_PRINTING)
            with reporter.muted():
                text: str = original(tensor, **kwargs)
                return text

        return repr_with_report

    patches.wrap_attribute(torch.Tensor, "__repr__", make_wrapper)


def _show_warnings_at_user_line(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Makes warnings of torch's C++ point to the user's line, not to a frame of selftime."""

    def make_wrapper(original: Any) -> Any:
        def show_at_user_line(
            message: Any, category: Any, filename: str, lineno: int, *rest: Any
        ) -> None:
            if filename.startswith(_PREFLIGHT_FOLDER):
                location = reporter.user_frames.find_current_line().location
                filename, lineno = location.file or filename, location.line or lineno
            original(message, category, filename, lineno, *rest)

        return show_at_user_line

    patches.wrap_attribute(warnings, "showwarning", make_wrapper)


def _keep_location_of_copied_storages(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Makes `copy.deepcopy` keep the simulated location of the storages that it copies."""

    def make_wrapper(original: Any) -> Any:
        @functools.wraps(original)
        def clone_with_location(storage: Any) -> Any:
            with reporter.pass_through():
                copy = original(storage)
            location = getattr(storage, LOCATION_ATTRIBUTE, None)
            if location is not None:
                setattr(copy, LOCATION_ATTRIBUTE, location)
            return copy

        return clone_with_location

    patches.wrap_attribute(_StorageBase, "clone", make_wrapper)


def _group_tensors_by_simulated_device(patches: AttributePatches) -> None:
    """Makes optimizers and gradient clipping group tensors by simulated device."""

    def make_wrapper(original: Any) -> Any:
        def group_tensors(lists: Any, with_indices: bool = False) -> Any:
            indices = {True: [], False: []}  # type: ignore[var-annotated]  # of tensors on the device
            for index, tensor in enumerate(lists[0]):
                indices[is_on_device(tensor)].append(index)
            groups = {}
            for is_on, chosen in indices.items():
                if chosen:
                    part = [[values[i] for i in chosen] if values else [] for values in lists]
                    for key, (tensors, positions) in original(part, with_indices).items():
                        device = SIMULATED_DEVICE if is_on else key[0]
                        groups[device, key[1]] = (tensors, [chosen[p] for p in positions])
            return groups

        return group_tensors

    patches.wrap_attribute(torch._C, "_group_tensors_by_device_and_dtype", make_wrapper)


def _enable_cpu_autocast(patches: AttributePatches) -> None:
    """Enables autocast for the CPU wherever the program enables it for CUDA."""
    kind = torch.autocast

    def wrap_enter(original: Any) -> Any:
        @functools.wraps(original)
        def enter_with_cpu_autocast(context: Any) -> Any:
            if context.device == "cuda":
                cpu_context = kind("cpu", dtype=context.fast_dtype, enabled=context._enabled)
                context._selftime_cpu_contexts = [
                    *getattr(context, "_selftime_cpu_contexts", ()),
                    cpu_context,
                ]
                original(cpu_context)
            return original(context)

        return enter_with_cpu_autocast

    def wrap_exit(original: Any) -> Any:
        @functools.wraps(original)
        def exit_with_cpu_autocast(context: Any, *error: Any) -> Any:
            result = original(context, *error)
            cpu_contexts = getattr(context, "_selftime_cpu_contexts", None)
            if cpu_contexts:
                original(cpu_contexts.pop(), *error)
            return result

        return exit_with_cpu_autocast

    patches.wrap_attribute(kind, "__enter__", wrap_enter)
    patches.wrap_attribute(kind, "__exit__", wrap_exit)


def _report_save_and_load(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Makes `torch.save` and `torch.load` report copies, and loads storages onto the device.

    Saved files say that their tensors are on the CPU, so that they can be loaded anywhere.
    """

    def report_saved_storage(storage: Any) -> None:
        if (
            not reporter.is_disabled
            and getattr(storage, LOCATION_ATTRIBUTE, None) is TensorLocation.DEVICE
        ):
            reporter.report_wait("torch.save", "copy_to_host", fixes.FIX_FOR_TORCH_SAVE)

    def restore_storage_on_device(storage: Any, location: str) -> Any:
        if reporter.is_disabled or not location.startswith("cuda"):
            return None
        setattr(storage, LOCATION_ATTRIBUTE, TensorLocation.DEVICE)
        reporter.report_wait("torch.load", "copy_to_device", fixes.FIX_FOR_BATCH_COPY)
        return storage

    entry = (_PRIORITY_OF_LOADED_STORAGE_HANDLER, report_saved_storage, restore_storage_on_device)
    patches.replace_attribute(
        serialization, "_package_registry", [entry, *serialization._package_registry]
    )


def _keep_modes_in_saved_tensor_hooks(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Keeps the function mode active in saved-tensor hooks, for which torch disables it."""

    def with_mode(hook: Any) -> Any:
        @functools.wraps(hook)
        def call_hook_with_mode(value: Any) -> Any:
            if reporter.is_disabled or _is_function_mode_active():
                return hook(value)
            with PreflightFunctionMode(reporter):
                return hook(value)

        return call_hook_with_mode

    def make_wrapper(original: Any) -> Any:
        @functools.wraps(original)
        def init(self_: Any, pack: Any, unpack: Any) -> None:
            original(self_, with_mode(pack), with_mode(unpack))

        return init

    patches.wrap_attribute(saved_tensors_hooks, "__init__", make_wrapper)


def _is_function_mode_active() -> bool:
    """Returns whether the torch function mode that simulates the device is active."""
    modes: list[Any] = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]  # torch's own
    return any(isinstance(mode, PreflightFunctionMode) for mode in modes)


def _generator_type_for_simulated_device(original: Any) -> Any:
    class Kind(type(original)):  # type: ignore[misc]  # a metaclass of torch's own
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __call__(cls, device: Any = None) -> Any:
            if cls is Generator and not is_fake_device(device):
                return original() if device is None else original(device)
            return type.__call__(cls)

    class Generator(original, metaclass=Kind):  # type: ignore[misc]  # as torch has it
        """A random number generator on the simulated device."""

        @property
        def device(self) -> torch.device:
            return SIMULATED_DEVICE

    return Generator
