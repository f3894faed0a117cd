"""Where torch looks past its own modes, so that the pretence would show."""

# ruff: noqa: SLF001 - torch has no public name for what a pretended device must answer

import functools
import os
import sys
import warnings
from typing import Any, Final

import torch
from torch import serialization
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import _get_current_function_mode_stack
from torch.storage import _StorageBase

from selftime.capture.patches import Patches
from selftime.capture.preflight import fixes
from selftime.capture.preflight.calls import DEVICE, Calls, is_pretended
from selftime.capture.preflight.marks import MARK, At, on_device
from selftime.capture.preflight.watch import Watch

_OURS: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - text, as frames have it
_ASKING: Final = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
_BEFORE_TORCHS: Final = 5
"""Less than the priority of torch's own ways to place what is loaded, which begin at 10."""


def install(patches: Patches, watch: Watch) -> None:
    _keep_modes_in_python_functions(patches)
    _print(patches, watch)
    _copy_storages(patches, watch)
    _group_by_device(patches)
    _autocast(patches)
    _save_and_load(patches, watch)
    _keep_modes_in_hooks(patches, watch)
    # DataParallel gives each device its part: here there is one.
    patches.put(torch._C, "_scatter", lambda tensor, *_: (tensor.to(DEVICE, non_blocking=True),))
    # It asks for the type of a stream before it asks a mode.
    patches.put(torch.Tensor, "record_stream", lambda _tensor, _stream: None)
    _warn(patches, watch)
    patches.wrap(torch, "Generator", _generator)
    patches.wrap(torch._C._nn, "_parse_to", _named_by_number)


def _keep_modes_in_python_functions(patches: Patches) -> None:
    """A function that is written in Python asks whether a mode wants it, and runs without it then.

    What it calls would escape us. So it is told that none does; what it calls are functions in
    C++, which we see. Classes with a `__torch_function__` of their own are heeded as ever.
    """
    for module in [m for name, m in sys.modules.items() if name.startswith("torch")]:
        for name in _ASKING:
            original = vars(module).get(name)
            if original is not None and original is getattr(torch._C, "_" + name, original):
                patches.put(module, name, _asking(name))


def _asking(name: str) -> Any:
    plain = (torch.Tensor.__torch_function__, torch._C._disabled_torch_function_impl)

    def overrides(value: Any) -> bool:
        own = getattr(type(value), "__torch_function__", None)
        return own is not None and not any(
            getattr(own, "__func__", own) is getattr(p, "__func__", p) for p in plain
        )

    if name == "has_torch_function":
        return lambda values: any(map(overrides, values))
    if name == "has_torch_function_unary":
        return overrides
    return lambda *values: any(map(overrides, values))


def _named_by_number(original: Any) -> Any:
    """`x.to(0)` names the accelerator by its number, which torch asks of the machine."""

    def parse_to(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            args = (torch.device("cuda", args[0]), *args[1:])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = torch.device("cuda", kwargs["device"])
        return original(*args, **kwargs)

    return parse_to


def _print(patches: Patches, watch: Watch) -> None:
    def around(original: Any) -> Any:
        @functools.wraps(original)
        def shown(tensor: torch.Tensor, **kwargs: Any) -> str:
            if not watch.inert and on_device(tensor):
                watch.report("Tensor.__repr__", "sync", fixes.PRINT)
            with watch.quietly():
                text: str = original(tensor, **kwargs)
                return text

        return shown

    patches.wrap(torch.Tensor, "__repr__", around)


def _warn(patches: Patches, watch: Watch) -> None:
    """A warning of torch's C++ names the innermost frame of Python, which is ours: name theirs."""

    def around(original: Any) -> Any:
        def show(message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:
            if filename.startswith(_OURS):
                place = watch.where.here().place
                filename, lineno = place.file or filename, place.line or lineno
            original(message, category, filename, lineno, *rest)

        return show

    patches.wrap(warnings, "showwarning", around)


def _copy_storages(patches: Patches, watch: Watch) -> None:
    """`copy.deepcopy` copies storages without an operator."""

    def around(original: Any) -> Any:
        @functools.wraps(original)
        def clone(storage: Any) -> Any:
            with watch.plainly():
                copy = original(storage)
            where = getattr(storage, MARK, None)
            if where is not None:
                setattr(copy, MARK, where)
            return copy

        return clone

    patches.wrap(_StorageBase, "clone", around)


def _group_by_device(patches: Patches) -> None:
    """Optimizers and the clipping of gradients group tensors by their device, in C++."""

    def around(original: Any) -> Any:
        def grouped(lists: Any, with_indices: bool = False) -> Any:
            sides = {True: [], False: []}  # type: ignore[var-annotated]  # numbers of tensors
            for number, tensor in enumerate(lists[0]):
                sides[on_device(tensor)].append(number)
            groups = {}
            for is_on, numbers in sides.items():
                if numbers:
                    part = [[values[n] for n in numbers] if values else [] for values in lists]
                    for key, (tensors, places) in original(part, with_indices).items():
                        device = DEVICE if is_on else key[0]
                        groups[device, key[1]] = (tensors, [numbers[p] for p in places])
            return groups

        return grouped

    patches.wrap(torch._C, "_group_tensors_by_device_and_dtype", around)


def _autocast(patches: Patches) -> None:
    """Autocasting on the device casts on the CPU, where the data are."""
    kind = torch.autocast

    def around_enter(original: Any) -> Any:
        @functools.wraps(original)
        def enter(context: Any) -> Any:
            if context.device == "cuda":
                twin = kind("cpu", dtype=context.fast_dtype, enabled=context._enabled)
                context._selftime_twins = [*getattr(context, "_selftime_twins", ()), twin]
                original(twin)
            return original(context)

        return enter

    def around_exit(original: Any) -> Any:
        @functools.wraps(original)
        def leave(context: Any, *error: Any) -> Any:
            result = original(context, *error)
            twins = getattr(context, "_selftime_twins", None)
            if twins:
                original(twins.pop(), *error)
            return result

        return leave

    patches.wrap(kind, "__enter__", around_enter)
    patches.wrap(kind, "__exit__", around_exit)


def _save_and_load(patches: Patches, watch: Watch) -> None:
    """Saving copies every storage to the host; what is loaded to the device pretends to be there.

    What is saved says that it comes from the CPU, so that it can be loaded without us.
    """

    def tagged(storage: Any) -> None:
        if not watch.inert and getattr(storage, MARK, None) is At.DEVICE:
            watch.report("torch.save", "copy_to_host", fixes.SAVE)

    def placed(storage: Any, location: str) -> Any:
        if watch.inert or not location.startswith("cuda"):
            return None
        setattr(storage, MARK, At.DEVICE)
        watch.report("torch.load", "copy_to_device", fixes.BATCH_COPY)
        return storage

    entry = (_BEFORE_TORCHS, tagged, placed)
    patches.put(serialization, "_package_registry", [entry, *serialization._package_registry])


def _keep_modes_in_hooks(patches: Patches, watch: Watch) -> None:
    """What packs a tensor for the backward pass runs within the call that made it, without us."""

    def with_mode(hook: Any) -> Any:
        @functools.wraps(hook)
        def hooked(value: Any) -> Any:
            if watch.inert or _is_calling():
                return hook(value)
            with Calls(watch):
                return hook(value)

        return hooked

    def around(original: Any) -> Any:
        @functools.wraps(original)
        def init(self_: Any, pack: Any, unpack: Any) -> None:
            original(self_, with_mode(pack), with_mode(unpack))

        return init

    patches.wrap(saved_tensors_hooks, "__init__", around)


def _is_calling() -> bool:
    """Whether the functions of torch are answered by us just now."""
    modes: list[Any] = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]  # torch's own
    return any(isinstance(mode, Calls) for mode in modes)


def _generator(original: Any) -> Any:
    class Kind(type(original)):  # type: ignore[misc]  # a metaclass of torch's own
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __call__(cls, device: Any = None) -> Any:
            if cls is Generator and not is_pretended(device):
                return original() if device is None else original(device)
            return type.__call__(cls)

    class Generator(original, metaclass=Kind):  # type: ignore[misc]  # as torch has it
        """A generator that says that it is on the device."""

        @property
        def device(self) -> torch.device:
            return DEVICE

    return Generator
