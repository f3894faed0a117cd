"""Answers which slices a number of the advice stands for, and which numbers a slice is part of."""

from collections.abc import Mapping
from typing import Any

import msgspec

from selftime.errors import UsageError
from selftime.reports.page_data.number_slices import number_slices_json
from selftime.reports.page_data.numbers_of_slice import numbers_of_slice
from selftime.web.answers import PageDataAnswers, parse_count


def slices_of_number_json(answers: PageDataAnswers, parameters: Mapping[str, str]) -> bytes:
    """Returns the slices of the number `of` as JSON; computes the advice if it is not known.

    A number that the advice does not have is an answer with one sentence as `error`: addresses are
    kept, and a browser would write a refusal to its console.
    """
    key = answers.id_and_fingerprint(parameters.get(".trace", ""))
    try:
        number = answers.advice.number(key, parameters.get("of", ""))
    except UsageError as error:
        return msgspec.json.encode({"error": str(error)})
    return number_slices_json(answers.open_trace(key[0]), number)


def numbers_json(answers: PageDataAnswers, parameters: Mapping[str, str]) -> bytes:
    """Returns the numbers of the advice that stand for slices as JSON, all or those of one slice.

    Where the advice is not known it is not computed, unless `compute` asks for it: `known` tells.
    """
    key = answers.id_and_fingerprint(parameters.get(".trace", ""))
    is_asked = parameters.get("compute", "") == "true"
    numbers = answers.advice.numbers(key) if is_asked else answers.advice.known_numbers(key)
    if numbers is None:
        return msgspec.json.encode({"known": False, "numbers": []})
    slice_id = parse_count(parameters, "slice")
    if slice_id is None:
        told: list[dict[str, Any]] = [number.to_dict() for number in numbers]
        return msgspec.json.encode({"known": True, "numbers": told})
    trace = answers.open_trace(key[0])
    if slice_id >= trace.slices.height:
        raise UsageError(
            f"`slice` is `{slice_id}`, which is no slice; slices have the ids from 0 to below "
            f"{trace.slices.height}"
        )
    told = numbers_of_slice(trace, numbers, slice_id)
    return msgspec.json.encode({"known": True, "numbers": told})
