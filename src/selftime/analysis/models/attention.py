"""Attention: products of queries and keys, and of their weights and values, for pairs kept.

    forward     2 b h pairs (d_k + d_v)
    backward    2 b h pairs (3 d_k + 2 d_v): the scores anew, and four gradients

Without a mask every query meets every key. With a causal one a query meets those up to its own
place, counted from the first (`is_causal`) or so that the last query meets the last key. What a
mask given as a tensor leaves out is not told: all pairs count. torch.utils.flop_counter counts all
pairs always. The operations of the softmax are not counted.
"""

from dataclasses import dataclass
from typing import Final, Literal

from selftime.analysis.models.calls import Call, Model, Tensor, Untold, Work, moved, wider

Corner = Literal["first", "last"]

_CORNERS: Final[dict[int, Corner]] = {1: "first", 2: "last"}
"""Kinds of masks, by the number that efficient attention takes; 0 is none."""


def pairs(queries: int, keys: int, causal: Corner | None) -> int:
    """How many queries and keys meet.

    >>> pairs(4, 4, None), pairs(4, 4, "first"), pairs(2, 4, "first"), pairs(2, 4, "last")
    (16, 10, 3, 7)
    """
    if causal is None:
        return queries * keys
    if causal == "first" or queries > keys:
        short = min(queries, keys)
        square = short * (short + 1) // 2
        return square + (queries - short) * keys if causal == "first" else square
    return queries * keys - queries * (queries - 1) // 2


@dataclass(frozen=True, slots=True)
class _Attention:
    """Where an operator takes what, and how its tensors lie."""

    causal: int
    """The place of a flag; of a number for `kinds`."""
    first: int = 0
    """The place of the queries; keys and values follow."""
    backward: bool = False
    heads_first: bool = True
    """Batch, heads, places, sizes; else batch, places, heads, sizes."""
    bias: int | None = None
    untold: tuple[int, ...] = ()
    """Places of bounds of packed sequences, lengths and windows: with them pairs are untold."""
    kinds: bool = False
    """Whether the mask is told by a number: 1 from the first corner, 2 from the last."""
    corner: Corner = "first"

    def __call__(self, call: Call) -> Work:
        query, key, value = (call.tensor(self.first + n) for n in range(3))
        if len(query.shape) < 3 or self._is_partial(call):
            raise Untold
        rows, columns = (t.shape[-2 if self.heads_first else -3] for t in (query, key))
        both, own = query.shape[-1], value.shape[-1]
        batch = query.elements // (rows * both) if rows * both else 0
        products = 3 * both + 2 * own if self.backward else both + own
        flops = 2 * batch * pairs(rows, columns, self._corner(call)) * products
        result = query.like(*query.shape[:-1], own)
        bias = None if self.bias is None else call.optional(self.bias)
        return Work(
            "attention", flops, self._moved(query, key, value, result, bias), wider(query, key)
        )

    def _moved(
        self, query: Tensor, key: Tensor, value: Tensor, result: Tensor, bias: Tensor | None
    ) -> int | None:
        once = (query, key, value, result, bias)
        if not self.backward:
            return moved(*once)
        gradients = (t.like(*t.shape) for t in (query, key, value, result))
        return moved(*once, *gradients)

    def _corner(self, call: Call) -> Corner | None:
        if not self.kinds:
            return self.corner if call.flag(self.causal) else None
        return _CORNERS.get(call.number(self.causal))

    def _is_partial(self, call: Call) -> bool:
        return any(
            call.optional(place) is not None or call.given(place) not in (None, -1)
            for place in self.untold
        )


ATTENTION: Final[dict[str, Model]] = {
    "scaled_dot_product_attention": _Attention(causal=5, bias=3),
    "_scaled_dot_product_attention_math": _Attention(causal=5, bias=3),
    "_scaled_dot_product_flash_attention": _Attention(causal=4),
    "_scaled_dot_product_flash_attention_for_cpu": _Attention(causal=4, bias=5),
    "_scaled_dot_product_efficient_attention": _Attention(causal=6, bias=3),
    "_scaled_dot_product_cudnn_attention": _Attention(causal=6, bias=3),
    "_scaled_dot_product_fused_attention_overrideable": _Attention(causal=5, bias=3),
    "_flash_attention_forward": _Attention(
        causal=8, heads_first=False, untold=(3, 11, 12, 13, 15), corner="last"
    ),
    "_efficient_attention_forward": _Attention(
        causal=9, heads_first=False, bias=3, untold=(4, 12, 13), kinds=True
    ),
    "_cudnn_attention_forward": _Attention(causal=10, bias=3, untold=(4,)),
    "_scaled_dot_product_flash_attention_backward": _Attention(
        causal=11, first=1, backward=True, untold=(6,)
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _Attention(
        causal=7, first=1, backward=True, bias=8
    ),
    "_scaled_dot_product_efficient_attention_backward": _Attention(
        causal=11, first=1, backward=True, bias=4
    ),
    "_scaled_dot_product_cudnn_attention_backward": _Attention(
        causal=14, first=1, backward=True, bias=8, untold=(9,)
    ),
    "_scaled_dot_product_fused_attention_overrideable_backward": _Attention(
        causal=13, first=1, backward=True, bias=4, untold=(8,)
    ),
    "_flash_attention_backward": _Attention(
        causal=11, first=1, backward=True, heads_first=False, untold=(6, 15, 16), corner="last"
    ),
    "_efficient_attention_backward": _Attention(
        causal=14, first=1, backward=True, heads_first=False, bias=4, untold=(6, 18), kinds=True
    ),
    "_cudnn_attention_backward": _Attention(causal=14, first=1, backward=True, bias=8, untold=(9,)),
}
