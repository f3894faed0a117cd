"""Compares what ranks called under one number: the collective, its sizes and its types."""

from collections.abc import Callable, Hashable, Mapping
from math import prod
from typing import Final

from selftime.analysis.hang.differences import DifferenceKind, Variant
from selftime.analysis.hang.job_groups import JobGroup
from selftime.flight_recorder import Call, Sizes
from selftime.names.recorded_collectives import (
    exchanges_unevenly,
    has_equal_inputs,
    has_equal_outputs,
    output_elements_per_input,
)

_IGNORED_INPUT_TYPES: Final = frozenset({"broadcast", "_broadcast_oop", "scatter"})
"""Collectives whose input counts at the root only, though others may state one."""
_OTHER_OUTPUT_TYPES: Final = _IGNORED_INPUT_TYPES | {"gather"}
"""Collectives of which a rank may have an input of another type than its output."""

Found = tuple[DifferenceKind, tuple[int, ...], tuple[Variant, ...]]
"""What differs, the ranks that differ from most, and what each did."""


def compare_calls(
    calls: Mapping[int, Call], group: JobGroup, *, knows_uneven_sizes: bool = True
) -> Found | None:
    """Returns the first difference between the calls of ranks; None if they go together.

    Args:
        calls: By rank, what it called.
        group: The group of the calls.
        knows_uneven_sizes: Whether the dumps have the sizes of all-to-all exchanges.
    """
    operations = _grouped(calls, lambda call: call.operation)
    if len(operations) > 1:
        return DifferenceKind.operation, odd_ranks(operations), operations
    [operation] = {call.operation for call in calls.values()}
    return (
        _different_sizes(calls, operation)
        or _impossible_sizes(calls, operation, group, knows_uneven_sizes=knows_uneven_sizes)
        or _different_types(calls, operation)
        or _different_shapes(calls, operation)
    )


def odd_ranks(variants: tuple[Variant, ...]) -> tuple[int, ...]:
    """Returns the ranks that did something else than most; none if there is no majority."""
    count = sum(len(variant.ranks) for variant in variants)
    if not variants or 2 * len(variants[0].ranks) <= count:
        return ()
    return tuple(sorted(rank for variant in variants[1:] for rank in variant.ranks))


def elements(sizes: Sizes) -> tuple[int, ...]:
    """Returns the number of elements of each tensor."""
    return tuple(prod(shape) for shape in sizes)


def _grouped(
    calls: Mapping[int, Call], key: Callable[[Call], Hashable | None]
) -> tuple[Variant, ...]:
    """Returns the calls by what is compared, that of most ranks first; None is not compared."""
    found: dict[Hashable, list[int]] = {}
    for rank in sorted(calls):
        told = key(calls[rank])
        if told is not None:
            found.setdefault(told, []).append(rank)
    ordered = sorted(found.values(), key=lambda ranks: (-len(ranks), ranks))
    return tuple(Variant(tuple(ranks), calls[ranks[0]]) for ranks in ordered)


def _different_sizes(calls: Mapping[int, Call], operation: str) -> Found | None:
    for is_compared, key in (
        (has_equal_inputs(operation), lambda call: elements(call.input_sizes) or None),
        (has_equal_outputs(operation), lambda call: elements(call.output_sizes) or None),
    ):
        variants = _grouped(calls, key) if is_compared else ()
        if len(variants) > 1:
            return DifferenceKind.sizes, odd_ranks(variants), variants
    return None


def _impossible_sizes(
    calls: Mapping[int, Call], operation: str, group: JobGroup, *, knows_uneven_sizes: bool
) -> Found | None:
    """Returns ranks whose output does not fit their input, or all where the sums do not agree."""
    if not group.are_ranks_stated:
        return None
    sums = {
        rank: (sum(elements(call.input_sizes)), sum(elements(call.output_sizes)))
        for rank, call in calls.items()
        if call.input_sizes and call.output_sizes
    }
    ratio = output_elements_per_input(operation, len(group.ranks))
    if ratio is not None:
        wrong = tuple(
            sorted(r for r, (given, made) in sums.items() if made * ratio[1] != given * ratio[0])
        )
        variants = tuple(Variant((rank,), calls[rank]) for rank in wrong)
        return (DifferenceKind.impossible_sizes, wrong, variants) if wrong else None
    if exchanges_unevenly(operation) and knows_uneven_sizes and set(sums) == set(group.ranks):
        given, made = (sum(column) for column in zip(*sums.values(), strict=True))
        if given != made:
            variants = _grouped(
                calls, lambda call: (elements(call.input_sizes), elements(call.output_sizes))
            )
            return DifferenceKind.impossible_sizes, (), variants
    return None


def _different_types(calls: Mapping[int, Call], operation: str) -> Found | None:
    def inputs(call: Call) -> Hashable | None:
        return call.input_dtypes if call.input_dtypes and any(elements(call.input_sizes)) else None

    def outputs(call: Call) -> Hashable | None:
        return (
            call.output_dtypes if call.output_dtypes and any(elements(call.output_sizes)) else None
        )

    for is_compared, key in (
        (operation not in _IGNORED_INPUT_TYPES, inputs),
        (operation != "gather", outputs),
    ):
        variants = _grouped(calls, key) if is_compared else ()
        if len(variants) > 1:
            return DifferenceKind.dtypes, odd_ranks(variants), variants
    wrong = tuple(
        rank
        for rank, call in sorted(calls.items())
        if operation not in _OTHER_OUTPUT_TYPES
        and inputs(call) is not None
        and outputs(call) is not None
        and inputs(call) != outputs(call)
    )
    variants = tuple(Variant((rank,), calls[rank]) for rank in wrong)
    return (DifferenceKind.dtypes, wrong, variants) if wrong else None


def _different_shapes(calls: Mapping[int, Call], operation: str) -> Found | None:
    if not (has_equal_inputs(operation) and has_equal_outputs(operation)):
        return None
    variants = _grouped(calls, lambda call: (call.input_sizes, call.output_sizes))
    return (DifferenceKind.shapes, odd_ranks(variants), variants) if len(variants) > 1 else None
