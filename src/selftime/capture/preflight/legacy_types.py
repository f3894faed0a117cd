"""The tensor types of old, `torch.cuda.FloatTensor` and its kin, on the pretended device."""

from typing import Any, Final

import torch

from selftime.capture.patches import Patches
from selftime.capture.preflight import fixes
from selftime.capture.preflight.marks import At, mark, on_device
from selftime.capture.preflight.watch import Watch

_NAMES: Final = (
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


class _Kind(type):
    """Makes tensors, not instances; a tensor is one if it is on the device and of the dtype."""

    plain: Any
    pretended_name: str
    watch: Watch

    def __call__(cls, *args: Any, **_kwargs: Any) -> torch.Tensor:
        sized = all(isinstance(size, int) for size in args) or isinstance(args[0], torch.Size)
        if not sized:
            cls.watch.report(cls.pretended_name, "copy_to_device", fixes.CONSTANT)
        with cls.watch.plainly():
            return mark(cls.plain(*args), At.DEVICE)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.plain) and on_device(instance)


def install(patches: Patches, watch: Watch) -> None:
    """Let the types construct tensors, and `set_default_tensor_type` take them."""
    for name in _NAMES:
        words = {"plain": getattr(torch, name), "pretended_name": f"torch.cuda.{name}"}
        patches.put(torch.cuda, name, _Kind(name, (), {**words, "watch": watch}))

    def around(original: Any) -> Any:
        def set_default_tensor_type(kind: Any) -> None:
            name = getattr(kind, "pretended_name", kind)
            if not isinstance(name, str) or not name.startswith("torch.cuda."):
                original(kind)
                return
            original(name.replace("torch.cuda.", "torch."))
            torch.set_default_device("cuda")

        return set_default_tensor_type

    patches.wrap(torch, "set_default_tensor_type", around)
