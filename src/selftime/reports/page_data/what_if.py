"""Makes the data that the page shows of predicted step times after a user's changes."""

from collections.abc import Mapping
from typing import Any

from selftime.advice.what_if import WhatIf
from selftime.reports.what_if import change_text, figures
from selftime.units import milliseconds_text, tenths_text


def what_if_data(found: WhatIf) -> dict[str, Any]:
    """Returns a prediction as the page's JSON object `WhatIf`: texts, and the step as a picture."""
    before, after = milliseconds_text(found.step_ms), milliseconds_text(found.predicted_ms)
    step: Mapping[str, Any] = {
        "before_ms": found.step_ms,
        "after_ms": found.predicted_ms,
        "shortest_ms": found.predicted_low_ms,
        "longest_ms": found.predicted_high_ms,
        "with_all_ms": None,
        "text": f"a step takes {before} now and {after} after the changes",
    }
    return {
        "figures": [{"label": label, "text": text} for label, text in figures(found)],
        "step": step,
        "changes": [
            {
                "text": change_text(change),
                "name_count": change.name_count,
                "names": [
                    {
                        "name": one.name,
                        "kind": one.kind,
                        "count": tenths_text(one.count_per_step),
                        "time": milliseconds_text(one.ms),
                    }
                    for one in change.names
                ],
            }
            for change in found.changes
        ],
    }
