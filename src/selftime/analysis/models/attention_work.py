"""FLOP models of attention: queries times keys, and attention weights times values.

forward     2 b h pairs (d_k + d_v)
    backward    2 b h pairs (3 d_k + 2 d_v): recomputed scores, and four gradients

Without a mask every query attends to every key. With a causal mask a query attends to keys up to
its own position, counted from the first (`is_causal`) or so that the last query attends to the last
key. The content of a mask given as a tensor is not recorded: all pairs count.
torch.utils.flop_counter always counts all pairs. The operations of the softmax are not counted.
"""

from dataclasses import dataclass
from typing import Final, Literal

from selftime.analysis.models.recorded_operator_calls import (
    OperatorWork,
    OperatorWorkModel,
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
    common_dtype_of_tensors,
    total_tensor_bytes,
)

CausalMaskCorner = Literal["first", "last"]

_CAUSAL_CORNER_BY_MASK_CODE: Final[dict[int, CausalMaskCorner]] = {1: "first", 2: "last"}
"""Maps the mask code of efficient attention to the corner where its causal mask begins; 0 means no
mask.
"""


def attended_query_key_pairs(
    query_count: int, key_count: int, causal_corner: CausalMaskCorner | None
) -> int:
    """Returns the number of pairs of query and key positions that the attention mask keeps.

    >>> attended_query_key_pairs(4, 4, None), attended_query_key_pairs(4, 4, "first")
    (16, 10)
    >>> attended_query_key_pairs(2, 4, "first"), attended_query_key_pairs(2, 4, "last")
    (3, 7)
    """
    if causal_corner is None:
        return query_count * key_count
    if causal_corner == "first" or query_count > key_count:
        short = min(query_count, key_count)
        square = short * (short + 1) // 2
        return square + (query_count - short) * key_count if causal_corner == "first" else square
    return query_count * key_count - query_count * (query_count - 1) // 2


@dataclass(frozen=True, slots=True)
class _AttentionModel:
    """Computes an attention operator's FLOPs and bytes, given its argument positions and layout."""

    causal: int
    """The position of the argument that says whether the mask is causal: a flag, or a mask code."""
    first: int = 0
    """The position of the query tensor; key and value follow."""
    backward: bool = False
    heads_first: bool = True
    """Whether tensors are (batch, heads, positions, sizes); else (batch, positions, heads, sizes).
    """
    bias: int | None = None
    sequence_bounds: tuple[int, ...] = ()
    """Positions of arguments that give sequence bounds, lengths or windows. If the call passes one,
    the number of query-key pairs is unknown.
    """
    has_mask_code: bool = False
    """Whether the argument at `causal` is a mask code, not a flag: 1 counts from the first key, 2
    to the last.
    """
    corner: CausalMaskCorner = "first"

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        query, key, value = (call.tensor_argument(self.first + n) for n in range(3))
        if len(query.shape) < 3 or self._has_partially_attended_sequences(call):
            raise UnknownOperatorArgument
        rows, columns = (t.shape[-2 if self.heads_first else -3] for t in (query, key))
        both, own = query.shape[-1], value.shape[-1]
        batch = query.elements // (rows * both) if rows * both else 0
        products = 3 * both + 2 * own if self.backward else both + own
        flops = (
            2
            * batch
            * attended_query_key_pairs(rows, columns, self._causal_corner(call))
            * products
        )
        result = query.like(*query.shape[:-1], own)
        bias = None if self.bias is None else call.optional_tensor_argument(self.bias)
        return OperatorWork(
            "attention",
            flops,
            self._attention_bytes_moved(query, key, value, result, bias),
            common_dtype_of_tensors(query, key),
        )

    def _attention_bytes_moved(
        self,
        query: RecordedTensor,
        key: RecordedTensor,
        value: RecordedTensor,
        result: RecordedTensor,
        bias: RecordedTensor | None,
    ) -> int | None:
        once = (query, key, value, result, bias)
        if not self.backward:
            return total_tensor_bytes(*once)
        gradients = (t.like(*t.shape) for t in (query, key, value, result))
        return total_tensor_bytes(*once, *gradients)

    def _causal_corner(self, call: RecordedOperatorCall) -> CausalMaskCorner | None:
        if not self.has_mask_code:
            return self.corner if call.flag(self.causal) else None
        return _CAUSAL_CORNER_BY_MASK_CODE.get(call.number(self.causal))

    def _has_partially_attended_sequences(self, call: RecordedOperatorCall) -> bool:
        return any(
            call.optional_tensor_argument(place) is not None
            or call.optional_value_argument(place) not in (None, -1)
            for place in self.sequence_bounds
        )


ATTENTION_MODELS: Final[dict[str, OperatorWorkModel]] = {
    "scaled_dot_product_attention": _AttentionModel(causal=5, bias=3),
    "_scaled_dot_product_attention_math": _AttentionModel(causal=5, bias=3),
    "_scaled_dot_product_flash_attention": _AttentionModel(causal=4),
    "_scaled_dot_product_flash_attention_for_cpu": _AttentionModel(causal=4, bias=5),
    "_scaled_dot_product_efficient_attention": _AttentionModel(causal=6, bias=3),
    "_scaled_dot_product_cudnn_attention": _AttentionModel(causal=6, bias=3),
    "_scaled_dot_product_fused_attention_overrideable": _AttentionModel(causal=5, bias=3),
    "_flash_attention_forward": _AttentionModel(
        causal=8, heads_first=False, sequence_bounds=(3, 11, 12, 13, 15), corner="last"
    ),
    "_efficient_attention_forward": _AttentionModel(
        causal=9, heads_first=False, bias=3, sequence_bounds=(4, 12, 13), has_mask_code=True
    ),
    "_cudnn_attention_forward": _AttentionModel(causal=10, bias=3, sequence_bounds=(4,)),
    "_scaled_dot_product_flash_attention_backward": _AttentionModel(
        causal=11, first=1, backward=True, sequence_bounds=(6,)
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _AttentionModel(
        causal=7, first=1, backward=True, bias=8
    ),
    "_scaled_dot_product_efficient_attention_backward": _AttentionModel(
        causal=11, first=1, backward=True, bias=4
    ),
    "_scaled_dot_product_cudnn_attention_backward": _AttentionModel(
        causal=14, first=1, backward=True, bias=8, sequence_bounds=(9,)
    ),
    "_scaled_dot_product_fused_attention_overrideable_backward": _AttentionModel(
        causal=13, first=1, backward=True, bias=4, sequence_bounds=(8,)
    ),
    "_flash_attention_backward": _AttentionModel(
        causal=11,
        first=1,
        backward=True,
        heads_first=False,
        sequence_bounds=(6, 15, 16),
        corner="last",
    ),
    "_efficient_attention_backward": _AttentionModel(
        causal=14,
        first=1,
        backward=True,
        heads_first=False,
        bias=4,
        sequence_bounds=(6, 18),
        has_mask_code=True,
    ),
    "_cudnn_attention_backward": _AttentionModel(
        causal=14, first=1, backward=True, bias=8, sequence_bounds=(9,)
    ),
}
"""Maps an attention operator's name, without `aten::`, to the model of its FLOPs and bytes."""
