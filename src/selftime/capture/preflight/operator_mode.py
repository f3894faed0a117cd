"""Checks every operator, after autograd, for waits of the host for the simulated device.

This includes operators called by the backward pass and by C++. The mode reports waits, raises
CUDA's errors for tensors on different devices, and passes the location from arguments to results.
"""

# ruff: noqa: SLF001 - torch has no public name for operator schemas and autograd nodes

from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from selftime.capture.preflight.locations import (
    TensorLocation,
    location_of,
    nested_tensors_in,
    set_location,
)
from selftime.capture.preflight.operators import operator_waits
from selftime.capture.preflight.reporter import WaitReporter

_NUMBER_OF_DEVICE_RESULTS_BY_OPERATOR: Final = {
    "_pack_padded_sequence": 1,
    "_pad_packed_sequence": 1,
}
"""For operators that return tensors on both: the number of first results that are on the device,
the rest being on the host."""

_BUILTIN_OPERATOR_NAMESPACES: Final = frozenset({"aten", "prims", "prim"})


class PreflightOperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Torch dispatch mode that reports waits of each operator and sets its results' locations."""

    def __init__(self, reporter: WaitReporter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._reporter = reporter

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Returns False, which keeps torch from importing Dynamo just to disable it."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        reporter = self._reporter
        if reporter.is_disabled or reporter.passes_through:
            return func(*args, **kwargs)
        if torch.is_inference_mode_enabled():  # composite operators are not decomposed there
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if torch._C._current_autograd_node() is not None:
            reporter.user_frames.is_forward = False
        with torch._C.DisableTorchFunction():
            tensors = nested_tensors_in((args, kwargs))
            locations = {location_of(tensor) for tensor in tensors}
            if TensorLocation.DEVICE in locations or TensorLocation.UNDECIDED in locations:
                self._report_waits(func, args, kwargs, tensors)
        result = _run_operator_on_cpu(func, args, kwargs)
        with torch._C.DisableTorchFunction():
            self._set_result_locations(func, result, locations, args)
        return result

    def _report_waits(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensors: list[torch.Tensor],
    ) -> None:
        reporter = self._reporter
        name = func._schema.name
        if func.namespace not in _BUILTIN_OPERATOR_NAMESPACES:
            reporter.leave_unchecked(
                f"`{name}` is a custom operator; what its kernel does is unknown"
            )
            return
        check_operator_devices(name.partition("::")[2], args, tensors)
        for wait in operator_waits(func, args, kwargs):
            if wait.kind is None:
                reporter.report_harmless_copy(name)
            else:
                reporter.report_wait(_operator_name_in_reports(name), wait.kind, wait.fix)

    def _set_result_locations(
        self, func: Any, result: Any, locations: set[TensorLocation], args: tuple[Any, ...]
    ) -> None:
        if TensorLocation.DEVICE in locations:
            location = TensorLocation.DEVICE
            if func._schema.name == "aten::copy_" and location_of(args[0]) in (
                TensorLocation.HOST,
                TensorLocation.PINNED,
            ):
                return
        elif (
            not (locations - {TensorLocation.UNDECIDED})
            and self._is_called_by_cpp_that_uses_device()
        ):
            location = TensorLocation.UNDECIDED
        else:
            return
        results = nested_tensors_in(result)
        for tensor in results[
            : _NUMBER_OF_DEVICE_RESULTS_BY_OPERATOR.get(func._schema.name.partition("::")[2])
        ]:
            if location_of(tensor) is not TensorLocation.DEVICE:
                set_location(tensor, location)

    def _is_called_by_cpp_that_uses_device(self) -> bool:
        """Returns whether the running operator is called by C++ code that uses the device."""
        call = self._reporter.call_device
        if call is None:
            return torch._C._current_autograd_node() is not None
        return call == "device"


def _operator_name_in_reports(name: str) -> str:
    return "aten::item" if name == "aten::_local_scalar_dense" else name


def _run_operator_on_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an operator on the CPU, in float32 if the CPU has no kernel for half precision."""
    try:
        if (
            func.namespace not in _BUILTIN_OPERATOR_NAMESPACES
        ):  # a custom operator may use devices in Python
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            return func(*args, **kwargs)
    except (RuntimeError, NotImplementedError) as error:
        if "not implemented for" not in str(error) or func._schema.is_mutable:
            raise
        half = (torch.half, torch.bfloat16)
        dtypes = [t.dtype for t in nested_tensors_in((args, kwargs)) if t.dtype in half]
        if not dtypes:
            raise
        float_args = _apply_to_nested_tensors(args, lambda t: t.float() if t.dtype in half else t)
        float_kwargs = _apply_to_nested_tensors(
            kwargs, lambda t: t.float() if t.dtype in half else t
        )
        result = func(*float_args, **float_kwargs)
        return _apply_to_nested_tensors(
            result, lambda t: t.to(dtypes[0]) if t.dtype is torch.float else t
        )


def _apply_to_nested_tensors(value: Any, change: Any) -> Any:
    """Returns a copy of `value` in which `change` was applied to each nested tensor."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_apply_to_nested_tensors(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _apply_to_nested_tensors(item, change) for key, item in value.items()}
    return value


_OPERATORS_THAT_ACCEPT_MIXED_DEVICES: Final = frozenset(
    {
        "copy_",
        "copy",
        "_to_copy",
        "_copy_from",
        "index",
        "_unsafe_index",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "_unsafe_index_put",
        "_pack_padded_sequence",
        "_pack_padded_sequence_backward",
        "_pad_packed_sequence",
        "_ctc_loss",
        "_ctc_loss_backward",
        "resize_as_",
        "set_",
        "lift_fresh",
        "_foreach_copy_",
        "_has_compatible_shallow_copy_type",
        "is_same_size",
    }
)
"""Operators that accept tensors on the host and on the device in the same call."""
_OPERATORS_THAT_INDEX_A_TENSOR: Final = frozenset(
    {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_"}
)
_MIXED_DEVICES_MESSAGE: Final = (
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
)


def check_operator_devices(name: str, args: tuple[Any, ...], tensors: list[torch.Tensor]) -> None:
    """Raises CUDA's error if an operator's tensors are on the host and on the device.

    The backward pass is not checked: C++ creates tensors in it that no mode sees.
    """
    if torch._C._current_autograd_node() is not None:
        return
    if name in _OPERATORS_THAT_INDEX_A_TENSOR:
        _raise_if_index_on_wrong_device(args)
    elif name == "_pack_padded_sequence" and location_of(args[1]) is TensorLocation.DEVICE:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
        )
    elif (
        name not in _OPERATORS_THAT_ACCEPT_MIXED_DEVICES
        and any(map(_is_host_tensor_with_dimensions, tensors))
        and TensorLocation.DEVICE in map(location_of, tensors)
    ):
        raise RuntimeError(_MIXED_DEVICES_MESSAGE)


def _raise_if_index_on_wrong_device(args: tuple[Any, ...]) -> None:
    indices = [index for index in args[1] if index is not None]
    if location_of(args[0]) in (TensorLocation.HOST, TensorLocation.PINNED) and any(
        location_of(index) is TensorLocation.DEVICE for index in indices
    ):
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
        )
    if (
        location_of(args[0]) is TensorLocation.DEVICE
        and len(args) > 2
        and _is_host_tensor_with_dimensions(args[2])
        and args[2].numel() > 1
    ):
        raise RuntimeError(_MIXED_DEVICES_MESSAGE)


def _is_host_tensor_with_dimensions(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor is on the host and neither empty nor zero-dimensional."""
    on_host = (
        location_of(tensor) in (TensorLocation.HOST, TensorLocation.PINNED) and not tensor.is_meta
    )
    return on_host and tensor.dim() > 0 and tensor.numel() > 0
