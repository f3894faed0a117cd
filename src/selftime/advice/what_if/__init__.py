"""Predicts the step time of a recorded program after changes that the user names.

`requested_changes.py` checks what is asked, `selected_work.py` and `named_classes.py` find the
slices that it means, `matched_names.py` tells their names and times, and `prediction.py` simulates
all changes together; what they save is computed as the saving of a finding is. `device_estimate.py`
estimates what a step on a CPU would take on a GPU, by the work of its operators alone.
"""

from selftime.advice.what_if.device_estimate import DeviceEstimate, estimate_on_device
from selftime.advice.what_if.prediction import FORMAT, WhatIf, what_if
from selftime.advice.what_if.requested_changes import CLASSES_TO_HIDE, CLASSES_TO_REMOVE

__all__ = [
    "CLASSES_TO_HIDE",
    "CLASSES_TO_REMOVE",
    "FORMAT",
    "DeviceEstimate",
    "WhatIf",
    "estimate_on_device",
    "what_if",
]
