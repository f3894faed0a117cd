"""Intercepts the program's calls of torch functions, before autograd, to simulate a CUDA device.

The mode handles what depends on the device (`x.device`, `x.cuda()`, `torch.zeros(device="cuda")`)
and calls everything else with the CPU in place of the device.
"""

# ruff: noqa: SLF001 - torch has no public name for several functions that depend on the device

import functools
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device as contexts

from selftime.capture.preflight import fixes
from selftime.capture.preflight.locations import (
    TensorLocation,
    is_on_device,
    location_of,
    nested_tensors_in,
    set_location,
)
from selftime.capture.preflight.reporter import WaitReporter
from selftime.capture.preflight.transfers import transfer_tensor

SIMULATED_DEVICE: Final = torch.device("cuda", 0)
_CPU_DEVICE: Final = torch.device("cpu")
_Tensor: Final[Any] = torch.Tensor
_TENSOR_FROM_DATA_FUNCTIONS: Final = frozenset(
    {torch.tensor, torch.as_tensor, torch.asarray, _Tensor.new_tensor}
)
"""Functions such as `torch.tensor` that create a tensor from data on the host or from another
tensor."""
_LegacyType: Final = type(torch.FloatTensor)
_REPORTED_NAME_OF_TOLIST: Final = "Tensor.tolist"


def is_fake_device(device: object) -> bool:
    """Returns whether the value of a `device` argument means the simulated device.

    Raises:
        RuntimeError: It is a CUDA device other than device 0, as CUDA raises.
    """
    if device is None or isinstance(device, bool):
        return False
    if isinstance(device, int):
        device = torch.device("cuda", device)
    if not isinstance(device, str | torch.device):
        return False
    device = torch.device(device)
    if device.type == "cuda" and device.index not in (None, 0):
        raise RuntimeError("CUDA error: invalid device ordinal")
    return device.type == "cuda"


class PreflightFunctionMode(TorchFunctionMode):
    """Torch function mode that makes each torch call behave as on the simulated device."""

    def __init__(self, reporter: WaitReporter) -> None:
        super().__init__()
        self._reporter = reporter
        self._handlers: dict[Any, Callable[..., Any]] = {
            _Tensor.device.__get__: self._handle_tensor_device,
            _Tensor.is_cuda.__get__: lambda _f, t: is_on_device(t),
            _Tensor.is_cpu.__get__: lambda f, t: not is_on_device(t) and f(t),
            _Tensor.get_device: lambda f, t: 0 if is_on_device(t) else f(t),
            _Tensor.type: self._handle_tensor_type,
            _Tensor.to: self._handle_tensor_to,
            _Tensor.cuda: self._handle_tensor_cuda,
            _Tensor.cpu: self._handle_tensor_cpu,
            _Tensor.numpy: self._handle_tensor_numpy,
            _Tensor.tolist: self._handle_tensor_tolist,
            _Tensor.pin_memory: self._handle_tensor_pin_memory,
            _Tensor.new: self._handle_tensor_new,
            _Tensor.is_pinned: lambda _f, t, *_a, **_k: location_of(t) is TensorLocation.PINNED,
            torch._VF._pad_packed_sequence: self._call_with_host_lengths,
            torch._VF._pack_padded_sequence: self._call_with_host_lengths,
            torch._C._nn.one_hot: self._handle_one_hot,
            **dict.fromkeys((torch.quantile, torch.nanquantile), self._call_with_muted_reports),
            **dict.fromkeys((_Tensor.quantile, _Tensor.nanquantile), self._call_with_muted_reports),
            **dict.fromkeys((torch.tensor_split, _Tensor.tensor_split), self._handle_tensor_split),
        }

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self._reporter.is_disabled or self._reporter.passes_through:
            return func(*args, **kwargs)
        handler = self._handlers.get(func)
        if handler is not None:
            return handler(func, *args, **kwargs)
        return self._call_function_without_handler(func, args, kwargs)

    # Functions without an own handler

    def _call_function_without_handler(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        device = kwargs.get("device")
        if (
            device is None
            and contexts.CURRENT_DEVICE is not None
            and func in _functions_that_use_default_device()
        ):
            device = contexts.CURRENT_DEVICE
        if device is not None or kwargs.get("pin_memory"):
            return self._call_tensor_factory(func, device, args, kwargs)
        if func in _TENSOR_FROM_DATA_FUNCTIONS:
            self._report_reads_of_listed_tensors(args)
        result = self._call_and_record_origin_line(func, args, kwargs)
        if func is _Tensor.new_tensor and is_on_device(args[0]):
            if result.numel():
                self._report_copy_of_python_data(func, args)
            set_location(result, TensorLocation.DEVICE)
        return result

    def _call_and_record_origin_line(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        reporter, before = self._reporter, self._reporter.call_device
        reporter.call_device = (
            "device" if any(map(is_on_device, nested_tensors_in((args, kwargs)))) else "host"
        )
        try:
            result = func(*args, **kwargs)
        finally:
            reporter.call_device = before
        # A call in place that returns nothing, as `x[mask] = 0`, has changed its arguments.
        results = nested_tensors_in(args if result is None else result)
        for tensor in results:
            # An intermediate that the call returns is on the device.
            if location_of(tensor) is TensorLocation.UNDECIDED:
                set_location(tensor, TensorLocation.DEVICE)
        if torch.is_grad_enabled():
            reporter.user_frames.record_origin_of_results(results)
        return result

    def _call_tensor_factory(
        self, func: Any, device: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Calls a function that creates a tensor on a device or in pinned memory."""
        kwargs = dict(kwargs)
        pinned, is_fake = kwargs.pop("pin_memory", False), is_fake_device(device)
        if device is None:
            return self._set_location_of_results(
                self._call_and_record_origin_line(func, args, kwargs),
                TensorLocation.PINNED if pinned else None,
            )
        location = (
            TensorLocation.DEVICE
            if is_fake
            else TensorLocation.PINNED
            if pinned
            else TensorLocation.HOST
        )
        copy_of_tensor = self._transfer_tensor_argument(func, location, args, kwargs)
        if copy_of_tensor is not None:
            return copy_of_tensor
        kwargs["device"] = _CPU_DEVICE if is_fake else device
        if func in _TENSOR_FROM_DATA_FUNCTIONS:
            self._report_reads_of_listed_tensors(args)
        result = self._call_and_record_origin_line(func, args, kwargs)
        if func in _TENSOR_FROM_DATA_FUNCTIONS and is_fake and result.numel():
            self._report_copy_of_python_data(func, args)
        return self._set_location_of_results(result, location)

    def _transfer_tensor_argument(
        self, func: Any, location: TensorLocation, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor | None:
        """Returns the copy that `torch.tensor(tensor)` makes on another device, else None."""
        data = args[-1] if func in _TENSOR_FROM_DATA_FUNCTIONS and args else kwargs.get("data")
        if not isinstance(data, torch.Tensor) or (location_of(data) is TensorLocation.DEVICE) == (
            location is TensorLocation.DEVICE
        ):
            return None
        dtype = kwargs.get("dtype")
        data = data if dtype is None else data.to(dtype)
        op = f"torch.{func.__name__}"
        result = transfer_tensor(self._reporter, data.detach(), location, op, non_blocking=False)
        return result.requires_grad_() if kwargs.get("requires_grad") else result

    def _report_copy_of_python_data(self, func: Any, args: tuple[Any, ...]) -> None:
        if not (args and isinstance(args[-1], torch.Tensor)):
            self._reporter.report_wait(
                f"torch.{func.__name__}", "copy_to_device", fixes.FIX_FOR_CONSTANT
            )

    def _report_reads_of_listed_tensors(self, args: tuple[Any, ...]) -> None:
        """Reports a wait if a list passed to `torch.tensor` contains tensors on the device."""
        data = args[-1] if args else None
        if isinstance(data, list | tuple) and any(map(is_on_device, nested_tensors_in(data))):
            self._reporter.report_wait("aten::item", "sync", fixes.FIX_FOR_TENSOR_LIST)

    @staticmethod
    def _set_location_of_results(result: Any, location: TensorLocation | None) -> Any:
        if location is not None:
            for tensor in nested_tensors_in(result):
                set_location(tensor, location)
        return result

    # Queries

    @staticmethod
    def _handle_tensor_device(func: Any, tensor: torch.Tensor) -> torch.device:
        return SIMULATED_DEVICE if is_on_device(tensor) else func(tensor)

    def _handle_tensor_type(
        self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        kind = args[0] if args else kwargs.pop("dtype", None)
        if kind is None:
            type_name: str = func(tensor)
            return type_name.replace("torch.", "torch.cuda.") if is_on_device(tensor) else type_name
        name = getattr(kind, "cuda_name", kind)
        if isinstance(name, str) and name.startswith("torch.cuda."):
            plain = self._call_and_record_origin_line(
                func, (tensor, name.replace("torch.cuda.", "torch.")), {}
            )
            return self._transfer_tensor(
                plain, TensorLocation.DEVICE, "Tensor.type", kwargs.get("non_blocking", False)
            )
        result = self._call_and_record_origin_line(func, (tensor, kind), kwargs)
        is_host_type = isinstance(name, str) or isinstance(kind, _LegacyType)
        if is_host_type and is_on_device(tensor):  # a legacy type includes the device
            return self._transfer_tensor(
                result, TensorLocation.HOST, "Tensor.type", kwargs.get("non_blocking", False)
            )
        return result

    def _handle_tensor_new(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """Runs `Tensor.new`, an old form of `new_empty` and `new_tensor`."""
        result = self._call_and_record_origin_line(func, (tensor, *args), kwargs)
        if is_on_device(tensor):
            if args and not isinstance(args[0], int | torch.Size | torch.Tensor):
                self._reporter.report_wait("Tensor.new", "copy_to_device", fixes.FIX_FOR_CONSTANT)
            set_location(result, TensorLocation.DEVICE)
        return result

    # Copies between devices

    def _handle_tensor_to(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        copy = kwargs.get("copy", False)
        other = args[0] if args else kwargs.get("other")
        options: dict[str, Any]
        device: torch.device | None
        if isinstance(other, torch.Tensor):
            device = SIMULATED_DEVICE if is_on_device(other) else _CPU_DEVICE
            options = {"dtype": other.dtype}
            non_blocking = kwargs.get("non_blocking", args[1] if len(args) > 1 else False)
        else:
            rest = {key: value for key, value in kwargs.items() if key != "copy"}
            parsed: Any = torch._C._nn._parse_to(*args[:3], **rest)
            device, dtype, non_blocking, memory_format = parsed
            copy = copy or (len(args) > 3 and args[3])
            options = {"dtype": dtype, "memory_format": memory_format}
        options = {key: value for key, value in options.items() if value is not None}
        if device is not None and device.type not in ("cuda", "cpu"):
            return self._call_and_record_origin_line(func, (tensor, *args), kwargs)
        if device is None or is_fake_device(device) == is_on_device(tensor):
            if not options and not copy:
                return tensor
            return self._call_and_record_origin_line(func, (tensor,), {**options, "copy": copy})
        location = TensorLocation.DEVICE if is_fake_device(device) else TensorLocation.HOST
        # The dtype is converted at the source; a pinned source counts as pinned for the copy.
        converted = (
            self._call_and_record_origin_line(func, (tensor,), options) if options else tensor
        )
        if converted is not tensor and location_of(tensor) is TensorLocation.PINNED:
            set_location(converted, TensorLocation.PINNED)
        return self._transfer_tensor(converted, location, "aten::to", non_blocking)

    def _handle_tensor_cuda(
        self,
        _func: Any,
        tensor: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        **kwargs: Any,
    ) -> torch.Tensor:
        options = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") else {}
        device = SIMULATED_DEVICE if device is None else device
        result: torch.Tensor = self._handle_tensor_to(
            _Tensor.to, tensor, device, non_blocking=non_blocking, **options
        )
        return result

    def _handle_tensor_cpu(self, _func: Any, tensor: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        options = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") else {}
        result: torch.Tensor = self._handle_tensor_to(_Tensor.to, tensor, _CPU_DEVICE, **options)
        return result

    def _transfer_tensor(
        self, tensor: torch.Tensor, destination: TensorLocation, op: str, non_blocking: bool
    ) -> torch.Tensor:
        return transfer_tensor(self._reporter, tensor, destination, op, non_blocking=non_blocking)

    def _handle_tensor_pin_memory(
        self, _func: Any, tensor: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> torch.Tensor:
        if is_on_device(tensor):
            raise RuntimeError(
                f"cannot pin 'torch.cuda.{tensor.type()[6:]}' only dense CPU tensors can be pinned"
            )
        if location_of(tensor) is TensorLocation.PINNED:
            return tensor
        with self._reporter.pass_through():
            return set_location(tensor.detach().clone(), TensorLocation.PINNED)

    # Values

    def _handle_tensor_numpy(
        self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        if is_on_device(tensor) and not (args[0] if args else kwargs.get("force")):
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        if is_on_device(tensor):
            self._reporter.report_wait("Tensor.numpy", "copy_to_host", fixes.FIX_FOR_COPY_TO_HOST)
        with self._reporter.muted():
            return func(tensor, *args, **kwargs)

    def _handle_tensor_tolist(self, func: Any, tensor: torch.Tensor) -> Any:
        if is_on_device(tensor):
            self._reporter.report_wait(
                _REPORTED_NAME_OF_TOLIST, "copy_to_host", fixes.FIX_FOR_TOLIST
            )
        with self._reporter.muted():
            return func(tensor)

    # Composite operators that check more on the CPU than on the device

    def _call_with_muted_reports(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        with self._reporter.muted():
            return self._call_and_record_origin_line(func, args, kwargs)

    def _handle_one_hot(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        classes = args[0] if args else kwargs.get("num_classes", -1)
        if is_on_device(tensor) and classes == -1:
            self._reporter.report_wait("aten::one_hot", "sync", fixes.FIX_FOR_ONE_HOT)
        return self._call_with_muted_reports(func, tensor, *args, **kwargs)

    def _call_with_host_lengths(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls an operator that returns (tensor on the device, sequence lengths on the host)."""
        result = self._call_and_record_origin_line(func, args, kwargs)
        set_location(result[1], TensorLocation.HOST)
        return result

    def _handle_tensor_split(
        self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        for location in nested_tensors_in((args, kwargs)):
            if is_on_device(location):
                raise RuntimeError(
                    "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on "
                    "cuda:0"
                )
        return self._call_and_record_origin_line(func, (tensor, *args), kwargs)


@functools.lru_cache(1)
def _functions_that_use_default_device() -> frozenset[Any]:
    """Returns the torch functions that create tensors on torch's current default device."""
    return frozenset(contexts._device_constructors())
