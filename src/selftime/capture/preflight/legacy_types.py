"""Replaces old tensor types such as `torch.cuda.FloatTensor` for the simulated device."""

from typing import Any, Final

import torch

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.preflight import fixes
from selftime.capture.preflight.locations import TensorLocation, is_on_device, set_location
from selftime.capture.preflight.reporter import WaitReporter

_LEGACY_TENSOR_TYPE_NAMES: Final = (
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
)


class _LegacyTensorType(type):
    """Metaclass of an old tensor type: a call creates a tensor on the simulated device.

    A tensor is an instance if it is on the device and an instance of `cpu_type`.
    """

    cpu_type: Any
    cuda_name: str
    reporter: WaitReporter

    def __call__(cls, *args: Any, **_kwargs: Any) -> torch.Tensor:
        sized = all(isinstance(size, int) for size in args) or isinstance(args[0], torch.Size)
        if not sized:
            cls.reporter.report_wait(cls.cuda_name, "copy_to_device", fixes.FIX_FOR_CONSTANT)
        with cls.reporter.pass_through():
            return set_location(cls.cpu_type(*args), TensorLocation.DEVICE)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.cpu_type) and is_on_device(instance)


def replace_legacy_types(patches: AttributePatches, reporter: WaitReporter) -> None:
    """Makes `torch.cuda.FloatTensor` and similar types create tensors on the simulated device."""
    for name in _LEGACY_TENSOR_TYPE_NAMES:
        attributes = {"cpu_type": getattr(torch, name), "cuda_name": f"torch.cuda.{name}"}
        patches.replace_attribute(
            torch.cuda, name, _LegacyTensorType(name, (), {**attributes, "reporter": reporter})
        )

    def make_wrapper(original: Any) -> Any:
        def set_default_tensor_type(kind: Any) -> None:
            name = getattr(kind, "cuda_name", kind)
            if not isinstance(name, str) or not name.startswith("torch.cuda."):
                original(kind)
                return
            original(name.replace("torch.cuda.", "torch."))
            torch.set_default_device("cuda")

        return set_default_tensor_type

    patches.wrap_attribute(torch, "set_default_tensor_type", make_wrapper)
