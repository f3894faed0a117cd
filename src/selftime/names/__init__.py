"""What the names in a trace mean: the only package that matches categories, operators, kernels.

One module for each kind of name; all of them are read from here.
"""

from selftime.names.calls import (
    is_capture_begin,
    is_capture_end,
    is_launch,
)
from selftime.names.categories import (
    ALLOCATION,
    ANNOTATIONS,
    CALLS,
    COPIES,
    DEVICE,
    FRAMES,
    OPERATORS,
    OUT_OF_MEMORY,
    TODAY,
    TRACK_KIND,
)
from selftime.names.frames import (
    Frame,
    frame,
)
from selftime.names.host import (
    FLOATING,
    LOADING_PREFIX,
    is_backward_node,
    is_collective_annotation,
    is_conversion,
    is_data_loading,
    is_library_operator,
    is_network_operator,
    is_optimizer_step,
    is_recorder_operator,
    loads_on_main_thread,
    optimizer_of,
    step_number,
    takes_many_tensors,
)
from selftime.names.kernels import (
    is_collective_kernel,
)
from selftime.names.marks import (
    has_step_word,
    is_host_collective,
    mark_family,
    mark_number,
)

__all__ = [
    "ALLOCATION",
    "ANNOTATIONS",
    "CALLS",
    "COPIES",
    "DEVICE",
    "FLOATING",
    "FRAMES",
    "LOADING_PREFIX",
    "OPERATORS",
    "OUT_OF_MEMORY",
    "TODAY",
    "TRACK_KIND",
    "Frame",
    "frame",
    "has_step_word",
    "is_backward_node",
    "is_capture_begin",
    "is_capture_end",
    "is_collective_annotation",
    "is_collective_kernel",
    "is_conversion",
    "is_data_loading",
    "is_host_collective",
    "is_launch",
    "is_library_operator",
    "is_network_operator",
    "is_optimizer_step",
    "is_recorder_operator",
    "loads_on_main_thread",
    "mark_family",
    "mark_number",
    "optimizer_of",
    "step_number",
    "takes_many_tensors",
]
