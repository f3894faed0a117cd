"""Copies between the host and the device that pretends: the data are copied, the mark is set.

Every copy is judged by what CUDA does: from pageable memory the host waits until the data are
staged, from pinned memory only if it does not say `non_blocking`; to the host it waits, unless
the copy is `non_blocking`, for then PyTorch copies into pinned memory.
"""

# ruff: noqa: SLF001 - torch has no public name for what a pretended device must answer

from typing import Any

import torch

from selftime.capture.preflight import fixes
from selftime.capture.preflight.marks import At, at, mark
from selftime.capture.preflight.watch import Watch


class _Transfer(torch.autograd.Function):
    """The copy for a tensor that carries gradients: they go the other way, and the host waits."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, watch: Watch, to: At) -> torch.Tensor:
        ctx.watch, ctx.back = watch, at(tensor)
        return _copied(tensor, watch, to)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, None, None]:
        (grad,) = grads
        if grad is None:
            return None, None, None
        with torch._C.DisableTorchFunction():
            judge_copy(ctx.watch, grad, ctx.back, "aten::_to_copy", non_blocking=False)
            return _copied(grad, ctx.watch, ctx.back), None, None


def transferred(
    watch: Watch, tensor: torch.Tensor, to: At, op: str, *, non_blocking: bool
) -> torch.Tensor:
    """A copy on the other side; to the host without blocking, it is in pinned memory."""
    judge_copy(watch, tensor, to, op, non_blocking=non_blocking)
    if to is At.HOST and non_blocking:
        to = At.PINNED
    if tensor.requires_grad and torch.is_grad_enabled():
        result: torch.Tensor = _Transfer.apply(tensor, watch, to)  # type: ignore[no-untyped-call]  # torch's own
        watch.where.stamp([result])
        return result
    return _copied(tensor, watch, to)


def judge_copy(watch: Watch, tensor: torch.Tensor, to: At, op: str, *, non_blocking: bool) -> None:
    """Report a copy of the whole tensor to the other side."""
    source = at(tensor)
    if tensor.numel() == 0 or source is At.ANYWHERE:
        return
    if to is At.DEVICE:
        if source is not At.PINNED:
            watch.report(op, "copy_to_device", fixes.PAGEABLE)
        elif not non_blocking:
            watch.report(op, "copy_to_device", fixes.PIN)
        else:
            watch.harmless(op)
    elif source is At.DEVICE:
        if non_blocking:
            watch.harmless(op)
        else:
            watch.report(op, "copy_to_host", fixes.TO_HOST)


def _copied(tensor: torch.Tensor, watch: Watch, to: At) -> torch.Tensor:
    with watch.plainly():
        return mark(tensor.detach().clone(), to)
