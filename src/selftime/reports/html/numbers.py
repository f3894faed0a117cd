"""Packs the slices of the numbers of the advice for a report: of each number the longest."""

from typing import Any, Final

import msgspec

from selftime.advice import Advice
from selftime.reports.html.packing import compress_json
from selftime.reports.html.tables import PackedTable
from selftime.reports.page_data.advice import common_folder_of_findings
from selftime.reports.page_data.number_slices import described_numbers, number_slices_json

NUMBERS_TABLE: Final = "number_slices"
"""The name of the table, which is no view."""
_PRIORITY: Final = 4
_MAX_SLICES_OF_VERSIONS: Final = (10, 100, 1_000)
"""Largest number of slices of a number in the small, medium and large version."""


def packed_number_slices(advice: Advice) -> list[PackedTable]:
    """Returns the table of all numbers that stand for slices; an empty list without any."""
    trace = advice.trace
    numbers = described_numbers(advice, common_folder_of_findings(advice))
    if trace is None or not numbers:
        return []

    def packed(max_slices: int) -> str:
        told: list[Any] = [
            msgspec.json.decode(number_slices_json(trace, one, max_slices)) for one in numbers
        ]
        return compress_json(told)

    versions = dict.fromkeys(map(packed, _MAX_SLICES_OF_VERSIONS))
    return [PackedTable(_PRIORITY, NUMBERS_TABLE, {}, tuple(versions))]
