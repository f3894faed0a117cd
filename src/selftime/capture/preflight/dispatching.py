"""Below autograd: every operator, also those of the backward pass and of C++, as torch runs it.

The mode hands the mark of the device on from arguments to results, judges each operator, and
refuses to mix devices where CUDA would.
"""

# ruff: noqa: SLF001 - torch has no public name for what a pretended device must answer

from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from selftime.capture.preflight.marks import At, at, mark, tensors_in
from selftime.capture.preflight.operators import verdicts
from selftime.capture.preflight.refusals import refuse
from selftime.capture.preflight.watch import Watch

_HOST_RESULTS: Final = {"_pack_padded_sequence": 1, "_pad_packed_sequence": 1}
"""Operators of which only the first results are on the device; the rest describes them."""

_OURS: Final = frozenset({"aten", "prims", "prim"})


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Judges operators and hands marks on."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._watch = watch

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled under it: torch need not load its compiler to keep out of here."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        watch = self._watch
        if watch.inert or watch.plain:
            return func(*args, **kwargs)
        if torch.is_inference_mode_enabled():  # what is made of others comes in one piece there
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if torch._C._current_autograd_node() is not None:
            watch.where.is_building = False
        with torch._C.DisableTorchFunction():
            given = tensors_in((args, kwargs))
            places = {at(tensor) for tensor in given}
            if At.DEVICE in places or At.ANYWHERE in places:
                self._judge(func, args, kwargs, given)
        result = _computed(func, args, kwargs)
        with torch._C.DisableTorchFunction():
            self._hand_on(func, result, places, args)
        return result

    def _judge(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        given: list[torch.Tensor],
    ) -> None:
        watch = self._watch
        name = func._schema.name
        if func.namespace not in _OURS:
            watch.leave_unchecked(f"`{name}` is a custom operator; what its kernel does is unknown")
            return
        refuse(name.partition("::")[2], args, given)
        for verdict in verdicts(func, args, kwargs):
            if verdict.kind is None:
                watch.harmless(name)
            else:
                watch.report(_shown(name), verdict.kind, verdict.fix)

    def _hand_on(self, func: Any, result: Any, places: set[At], args: tuple[Any, ...]) -> None:
        if At.DEVICE in places:
            where = At.DEVICE
            if func._schema.name == "aten::copy_" and at(args[0]) in (At.HOST, At.PINNED):
                return
        elif not (places - {At.ANYWHERE}) and self._is_internal():
            where = At.ANYWHERE
        else:
            return
        results = tensors_in(result)
        for tensor in results[: _HOST_RESULTS.get(func._schema.name.partition("::")[2])]:
            if at(tensor) is not At.DEVICE:
                mark(tensor, where)

    def _is_internal(self) -> bool:
        """Whether C++ makes a tensor for itself, in a call or a gradient on the device."""
        call = self._watch.call
        if call is None:
            return torch._C._current_autograd_node() is not None
        return call == "device"


def _shown(name: str) -> str:
    return "aten::item" if name == "aten::_local_scalar_dense" else name


def _computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result, computed in single precision where the CPU has no kernel for a shorter one."""
    try:
        if func.namespace not in _OURS:  # it may be written in Python, and ask for devices
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            return func(*args, **kwargs)
    except (RuntimeError, NotImplementedError) as error:
        if "not implemented for" not in str(error) or func._schema.is_mutable:
            raise
        short = (torch.half, torch.bfloat16)
        kinds = [t.dtype for t in tensors_in((args, kwargs)) if t.dtype in short]
        if not kinds:
            raise
        wide = _each(args, lambda t: t.float() if t.dtype in short else t)
        named = _each(kwargs, lambda t: t.float() if t.dtype in short else t)
        result = func(*wide, **named)
        return _each(result, lambda t: t.to(kinds[0]) if t.dtype is torch.float else t)


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_each(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _each(item, change) for key, item in value.items()}
    return value
