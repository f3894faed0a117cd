"""Above autograd: what the program says to torch, with the names of devices in it.

The mode answers what depends on the device (`x.device`, `x.cuda()`, `torch.zeros(device="cuda")`)
and hands everything else on, with the CPU in place of the device.
"""

# ruff: noqa: SLF001 - torch has no public name for what a pretended device must answer

import functools
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device as contexts

from selftime.capture.preflight import fixes
from selftime.capture.preflight.marks import At, at, mark, on_device, tensors_in
from selftime.capture.preflight.transfers import transferred
from selftime.capture.preflight.watch import Watch

DEVICE: Final = torch.device("cuda", 0)
_HOST: Final = torch.device("cpu")
_T: Final[Any] = torch.Tensor
_FROM_DATA: Final = frozenset({torch.tensor, torch.as_tensor, torch.asarray, _T.new_tensor})
"""Factories that copy from what they are given, which is on the host unless it is a tensor."""
_LEGACY: Final = type(torch.FloatTensor)
_BY_VALUE: Final = "Tensor.tolist"


def is_pretended(device: object) -> bool:
    """Whether a device, as a program names it, is the one that is pretended here."""
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


class Calls(TorchFunctionMode):
    """Answers for the device."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch
        self._answers: dict[Any, Callable[..., Any]] = {
            _T.device.__get__: self._device,
            _T.is_cuda.__get__: lambda _f, t: on_device(t),
            _T.is_cpu.__get__: lambda f, t: not on_device(t) and f(t),
            _T.get_device: lambda f, t: 0 if on_device(t) else f(t),
            _T.type: self._type,
            _T.to: self._to,
            _T.cuda: self._cuda,
            _T.cpu: self._cpu,
            _T.numpy: self._numpy,
            _T.tolist: self._tolist,
            _T.pin_memory: self._pin,
            _T.new: self._new,
            _T.is_pinned: lambda _f, t, *_a, **_k: at(t) is At.PINNED,
            torch._VF._pad_packed_sequence: self._described,
            torch._VF._pack_padded_sequence: self._described,
            torch._C._nn.one_hot: self._one_hot,
            **dict.fromkeys((torch.quantile, torch.nanquantile), self._unchecked),
            **dict.fromkeys((_T.quantile, _T.nanquantile), self._unchecked),
            **dict.fromkeys((torch.tensor_split, _T.tensor_split), self._tensor_split),
        }

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self._watch.inert or self._watch.plain:
            return func(*args, **kwargs)
        answer = self._answers.get(func)
        if answer is not None:
            return answer(func, *args, **kwargs)
        return self._ordinary(func, args, kwargs)

    # Everything that has no answer of its own

    def _ordinary(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device = kwargs.get("device")
        if device is None and contexts.CURRENT_DEVICE is not None and func in _constructors():
            device = contexts.CURRENT_DEVICE
        if device is not None or kwargs.get("pin_memory"):
            return self._made(func, device, args, kwargs)
        if func in _FROM_DATA:
            self._report_read(args)
        result = self._called(func, args, kwargs)
        if func is _T.new_tensor and on_device(args[0]):
            if result.numel():
                self._report_constant(func, args)
            mark(result, At.DEVICE)
        return result

    def _called(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        watch, before = self._watch, self._watch.call
        watch.call = "device" if any(map(on_device, tensors_in((args, kwargs)))) else "host"
        try:
            result = func(*args, **kwargs)
        finally:
            watch.call = before
        results = tensors_in(result)
        for tensor in results:
            if at(tensor) is At.ANYWHERE:  # it leaves the call that it was made in
                mark(tensor, At.DEVICE)
        if torch.is_grad_enabled():
            watch.where.stamp(results)
        return result

    def _made(self, func: Any, device: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a factory makes on a device that is named, or in pinned memory."""
        kwargs = dict(kwargs)
        pinned, pretended = kwargs.pop("pin_memory", False), is_pretended(device)
        if device is None:
            return self._marked(self._called(func, args, kwargs), At.PINNED if pinned else None)
        where = At.DEVICE if pretended else At.PINNED if pinned else At.HOST
        copied = self._copied_from_tensor(func, where, args, kwargs)
        if copied is not None:
            return copied
        kwargs["device"] = _HOST if pretended else device
        if func in _FROM_DATA:
            self._report_read(args)
        result = self._called(func, args, kwargs)
        if func in _FROM_DATA and pretended and result.numel():
            self._report_constant(func, args)
        return self._marked(result, where)

    def _copied_from_tensor(
        self, func: Any, where: At, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor | None:
        """`torch.tensor(t, device=…)` and its kin: a copy of a tensor to the device."""
        data = args[-1] if func in _FROM_DATA and args else kwargs.get("data")
        if not isinstance(data, torch.Tensor) or (at(data) is At.DEVICE) == (where is At.DEVICE):
            return None
        dtype = kwargs.get("dtype")
        data = data if dtype is None else data.to(dtype)
        op = f"torch.{func.__name__}"
        result = transferred(self._watch, data.detach(), where, op, non_blocking=False)
        return result.requires_grad_() if kwargs.get("requires_grad") else result

    def _report_constant(self, func: Any, args: tuple[Any, ...]) -> None:
        if not (args and isinstance(args[-1], torch.Tensor)):
            self._watch.report(f"torch.{func.__name__}", "copy_to_device", fixes.CONSTANT)

    def _report_read(self, args: tuple[Any, ...]) -> None:
        """A list of tensors on the device is read one by one, where no operator is seen."""
        data = args[-1] if args else None
        if isinstance(data, list | tuple) and any(map(on_device, tensors_in(data))):
            self._watch.report("aten::item", "sync", fixes.STACK)

    @staticmethod
    def _marked(result: Any, where: At | None) -> Any:
        if where is not None:
            for tensor in tensors_in(result):
                mark(tensor, where)
        return result

    # Questions

    @staticmethod
    def _device(func: Any, tensor: torch.Tensor) -> torch.device:
        return DEVICE if on_device(tensor) else func(tensor)

    def _type(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        kind = args[0] if args else kwargs.pop("dtype", None)
        if kind is None:
            own: str = func(tensor)
            return own.replace("torch.", "torch.cuda.") if on_device(tensor) else own
        name = getattr(kind, "pretended_name", kind)
        if isinstance(name, str) and name.startswith("torch.cuda."):
            plain = self._called(func, (tensor, name.replace("torch.cuda.", "torch.")), {})
            return self._moved(plain, At.DEVICE, "Tensor.type", kwargs.get("non_blocking", False))
        result = self._called(func, (tensor, kind), kwargs)
        is_of_host = isinstance(name, str) or isinstance(kind, _LEGACY)
        if is_of_host and on_device(tensor):  # a type of old names a device, too
            return self._moved(result, At.HOST, "Tensor.type", kwargs.get("non_blocking", False))
        return result

    def _new(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """The way of old to `new_empty` and `new_tensor`."""
        result = self._called(func, (tensor, *args), kwargs)
        if on_device(tensor):
            if args and not isinstance(args[0], int | torch.Size | torch.Tensor):
                self._watch.report("Tensor.new", "copy_to_device", fixes.CONSTANT)
            mark(result, At.DEVICE)
        return result

    # Moves

    def _to(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        copy = kwargs.get("copy", False)
        other = args[0] if args else kwargs.get("other")
        words: dict[str, Any]
        device: torch.device | None
        if isinstance(other, torch.Tensor):
            device = DEVICE if on_device(other) else _HOST
            words = {"dtype": other.dtype}
            non_blocking = kwargs.get("non_blocking", args[1] if len(args) > 1 else False)
        else:
            rest = {key: value for key, value in kwargs.items() if key != "copy"}
            parsed: Any = torch._C._nn._parse_to(*args[:3], **rest)
            device, dtype, non_blocking, memory_format = parsed
            copy = copy or (len(args) > 3 and args[3])
            words = {"dtype": dtype, "memory_format": memory_format}
        words = {key: value for key, value in words.items() if value is not None}
        if device is not None and device.type not in ("cuda", "cpu"):
            return self._called(func, (tensor, *args), kwargs)
        if device is None or is_pretended(device) == on_device(tensor):
            if not words and not copy:
                return tensor
            return self._called(func, (tensor,), {**words, "copy": copy})
        where = At.DEVICE if is_pretended(device) else At.HOST
        # The values change on the side where the copy begins; what was pinned stays so for it.
        converted = self._called(func, (tensor,), words) if words else tensor
        if converted is not tensor and at(tensor) is At.PINNED:
            mark(converted, At.PINNED)
        return self._moved(converted, where, "aten::to", non_blocking)

    def _cuda(
        self,
        _func: Any,
        tensor: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        **kwargs: Any,
    ) -> torch.Tensor:
        words = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") else {}
        device = DEVICE if device is None else device
        result: torch.Tensor = self._to(_T.to, tensor, device, non_blocking=non_blocking, **words)
        return result

    def _cpu(self, _func: Any, tensor: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        words = {"memory_format": kwargs["memory_format"]} if kwargs.get("memory_format") else {}
        result: torch.Tensor = self._to(_T.to, tensor, _HOST, **words)
        return result

    def _moved(self, tensor: torch.Tensor, to: At, op: str, non_blocking: bool) -> torch.Tensor:
        return transferred(self._watch, tensor, to, op, non_blocking=non_blocking)

    def _pin(self, _func: Any, tensor: torch.Tensor, *_args: Any, **_kwargs: Any) -> torch.Tensor:
        if on_device(tensor):
            raise RuntimeError(
                f"cannot pin 'torch.cuda.{tensor.type()[6:]}' only dense CPU tensors can be pinned"
            )
        if at(tensor) is At.PINNED:
            return tensor
        with self._watch.plainly():
            return mark(tensor.detach().clone(), At.PINNED)

    # Values

    def _numpy(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if on_device(tensor) and not (args[0] if args else kwargs.get("force")):
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        if on_device(tensor):
            self._watch.report("Tensor.numpy", "copy_to_host", fixes.TO_HOST)
        with self._watch.quietly():
            return func(tensor, *args, **kwargs)

    def _tolist(self, func: Any, tensor: torch.Tensor) -> Any:
        if on_device(tensor):
            self._watch.report(_BY_VALUE, "copy_to_host", fixes.TOLIST)
        with self._watch.quietly():
            return func(tensor)

    # Operators whose composite kernel checks more on the CPU than on the device

    def _unchecked(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        with self._watch.quietly():
            return self._called(func, args, kwargs)

    def _one_hot(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        classes = args[0] if args else kwargs.get("num_classes", -1)
        if on_device(tensor) and classes == -1:
            self._watch.report("aten::one_hot", "sync", fixes.ONE_HOT)
        return self._unchecked(func, tensor, *args, **kwargs)

    def _described(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """The first result is on the device; the second says on the host how long what is."""
        result = self._called(func, args, kwargs)
        mark(result[1], At.HOST)
        return result

    def _tensor_split(self, func: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        for where in tensors_in((args, kwargs)):
            if on_device(where):
                raise RuntimeError(
                    "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on "
                    "cuda:0"
                )
        return self._called(func, (tensor, *args), kwargs)


@functools.lru_cache(1)
def _constructors() -> frozenset[Any]:
    """Factories that heed `torch.set_default_device` and `with torch.device(…)`."""
    return frozenset(contexts._device_constructors())
