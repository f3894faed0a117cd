"""What to do instead, a sentence for each way of waiting."""

from typing import Final

ITEM: Final = "keep the value on the device (`total += loss.detach()`) and read it every N steps"
BRANCH: Final = (
    "choose on the device with `torch.where`, check with `torch._assert_async`, or look every N "
    "steps: the condition is read by the host"
)
MODULE: Final = "move the module once, before the loop"
MASK: Final = (
    "keep the shape: `torch.where` or a multiplication by the mask, or `ignore_index` in the loss"
)
MASKED_VALUE: Final = (
    "use `torch.where(mask, value, x)`, or a Python number as the value, which needs no indices"
)
NONZERO: Final = (
    "use the mask itself in `torch.where(mask, a, b)` or `masked_fill`, or "
    "`torch.nonzero_static(x, size=n)`"
)
UNIQUE: Final = (
    "ask for what is needed of it: `x.amin() != x.amax()` for two values or more, "
    "`torch.scatter_add` for counts of known classes"
)
COUNTS: Final = (
    "count into a tensor of known size: "
    "`torch.zeros(n, device=x.device).scatter_add_(0, x, torch.ones_like(x))`"
)
ONE_HOT: Final = "name the number of classes: `one_hot(x, num_classes)`"
REPEATS: Final = "pass `output_size=`, the sum of the repeats, if the program knows it"
COMPARISON: Final = "compare on the device, `(a == b).all()`, and read the answer every N steps"
INFO: Final = (
    "use the `_ex` variant (`torch.linalg.inv_ex`, `cholesky_ex`, `solve_ex`), which returns the "
    "error code on the device, and look at it every N steps"
)
LINALG: Final = "move it out of the step, or do it every N steps: CUDA's solver reports to the host"
NORMAL: Final = (
    "draw `mean + std * torch.randn_like(std)`: `torch.normal` reads the smallest `std`; in "
    "torch.distributions use `rsample`"
)
CTC: Final = "it copies the lengths; cuDNN's CTC needs int32 targets on the host and no copy"
HOST_SCALAR: Final = "pass a Python number, or make the tensor on the device before the loop"
PRODUCT: Final = (
    "the gradient of a product looks for zeros on the host: use `log().sum().exp()` where the "
    "values are positive"
)
SAVE: Final = "save every N steps: each tensor is copied to the host"
ISIN: Final = "pass `assume_unique=True` if both are, or compare with `==` and `any`"
RANGE: Final = "name the range: `torch.histc(x, bins, min, max)`"
MODE: Final = (
    "it reads from the device for more than 2048 values; count classes with `scatter_add_`"
)
DEVICE_VALUE: Final = "pass a Python number, or use `torch.where`: this operator reads its value"
SCALAR: Final = (
    "a Python number is copied to the device for this index: use `index_fill_`, "
    "`torch.where`, or a value tensor that is on the device"
)
CPU_INDEX: Final = "build the index on the device once, before the loop, or use slices"
CONSTANT: Final = (
    "make it once before the loop, or on the device with `torch.full`, `arange`, `zeros`"
)
PAGEABLE: Final = (
    "pin the memory (`DataLoader(pin_memory=True)` or `.pin_memory()`) and copy with "
    "`non_blocking=True`"
)
PIN: Final = "it is pinned: add `non_blocking=True`, and the host goes on"
BATCH_COPY: Final = "copy the batch in one piece before the step"
STACK: Final = "use `torch.stack`, which joins them on the device"
TO_HOST: Final = "copy less often, or with `non_blocking=True`, an event, and a look one step later"
TO_HOST_PAGEABLE: Final = "copy into pinned memory, and look at it after an event one step later"
TOLIST: Final = "keep it on the device; copy what is needed once, every N steps"
PRINT: Final = "print every N steps, and a detached copy"
SORTER: Final = "sort the sequence itself: the order is checked on the host"
SEGMENTS: Final = "pass `unsafe=True` if the lengths are known to be right"
SPARSE: Final = "build the sparse tensor once, outside the step: its size is read by the host"
SYNCHRONIZE: Final = "leave it out; for timing use CUDA events and read them later"
CUDA_FREE: Final = "leave it out of the step: giving memory back waits for all work"

_WITHIN: Final = {
    "amp/grad_scaler.py": (
        "the scaler asks whether gradients overflowed: bfloat16 needs no scaler, and an optimizer "
        "with `fused=True` asks on the device"
    ),
    "nn/utils/clip_grad.py": "leave out `error_if_nonfinite`, or check every N steps",
    "distributions/": "pass `validate_args=False`: the check of the arguments is read by the host",
    "optim/lr_scheduler.py": "give the scheduler a number that is read every N steps",
    "optim/lbfgs.py": "LBFGS decides on the host: step less often, or use another optimizer",
    "optim/asgd.py": "pass `capturable=True`, which keeps the averages on the device",
    "optim/swa_utils.py": "update the average every N steps",
    "nn/modules/batchnorm.py": "give `momentum` a number: None reads the count of batches",
    "nn/modules/transformer.py": "pass `is_causal=`: the mask is compared on the host to find out",
}
"""What to do where torch's own Python reads a value, by file."""


def in_context(fix: str, via: frozenset[str], *, branches: bool) -> str:
    """The same, said for the part of torch that it came through, or for a condition."""
    if fix == PAGEABLE and "nn/modules/module.py" in via:
        return MODULE
    if fix != ITEM:
        return fix
    for part, better in _WITHIN.items():
        if any(file.startswith(part) for file in via):
            return better
    return BRANCH if branches else fix
