"""Classifies operators, Python frames and stacks by name, for memory analysis."""

import re
from typing import Final

_BARE_ALLOCATION_OPERATOR: Final = re.compile(r"aten::empty(?:$|[_.])")
_GRADIENT_ACCUMULATION_NODE: Final = re.compile(
    r"(?:autograd::engine::evaluate_function: )?torch::autograd::AccumulateGrad"
)
_MODEL_BUILDING_FRAME: Final = re.compile(
    r"(?:.*/)?torch/nn/(?:init\.py\(\d+\): \w+_"
    r"|(?:modules/[^:]*|parameter\.py\(\d+\))"
    r": (?:__init__|__new__|_apply|convert|reset_parameters))$"
)

PROGRAM_PHASES: Final = ("loading", "optimizing", "backward", "building", "forward")
"""Phases of a program that the frames of a stack can show."""
_FRAME_PATTERN_BY_PHASE: Final = {
    "loading": re.compile(r"(?:.*/)?torch/utils/data/"),
    "optimizing": re.compile(r"(?:.*/)?torch/optim/"),
    "backward": re.compile(
        r"(?:.*/)?torch/(?:autograd/graph\.py\(\d+\): _engine_run_backward"
        r"|(?:autograd/__init__|_tensor)\.py\(\d+\): (?:backward|grad))$"
        r"|.*torch::autograd::Engine"
    ),
    "building": _MODEL_BUILDING_FRAME,
    "forward": re.compile(r"(?:.*/)?torch/nn/modules/"),
}
"""Maps a phase of the program to a pattern of the Python frames that show the phase."""
_NATIVE_FILE: Final = re.compile(
    r"(?:\?\?)?$|.*\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|inl|S|so(?:\.\d+)*)$", re.IGNORECASE
)
"""Matches the file of a native stack frame, such as a C++ file."""
_AUTOGRAD_ENGINE: Final = re.compile(r"torch::autograd::Engine::\w+")


def is_bare_allocation(operator: str) -> bool:
    """Returns whether an operator only allocates memory, as `aten::empty` does.

    >>> is_bare_allocation("aten::empty_strided"), is_bare_allocation("aten::zeros")
    (True, False)
    """
    return _BARE_ALLOCATION_OPERATOR.match(operator) is not None


def accumulates_gradient(operator: str) -> bool:
    """Returns whether an operator is the autograd node that adds to a parameter's gradient.

    >>> accumulates_gradient("torch::autograd::AccumulateGrad")
    True
    """
    return _GRADIENT_ACCUMULATION_NODE.match(operator) is not None


def calls_backward(frame_name: str) -> bool:
    """Returns whether a Python frame is in a call of autograd's `backward` or `grad`.

    >>> calls_backward("torch/autograd/graph.py(825): _engine_run_backward")
    True
    >>> calls_backward("torch/_tensor.py(625): backward"), calls_backward("net.py(5): backward")
    (True, False)
    """
    return _FRAME_PATTERN_BY_PHASE["backward"].match(frame_name) is not None


def builds_module(frame_name: str) -> bool:
    """Returns whether a Python frame creates or moves the parameters of a module.

    >>> builds_module("torch/nn/modules/module.py(927): _apply")
    True
    >>> builds_module("torch/nn/modules/module.py(1518): __call__")
    False
    """
    return _MODEL_BUILDING_FRAME.match(frame_name) is not None


def profiler_stack_frame(file: str, line: int, function: str) -> str:
    """Returns an allocator's stack frame in the profiler's format; "" for a native frame.

    Of native frames only those of autograd's engine are kept: they show a backward pass.

    >>> profiler_stack_frame("train.py", 12, "step"), profiler_stack_frame("??", 0, "PyEval_Eval")
    ('train.py(12): step', '')
    >>> profiler_stack_frame("engine.cpp", 0, "torch::autograd::Engine::thread_main(...)")
    'engine.cpp(0): torch::autograd::Engine::thread_main'
    """
    if _NATIVE_FILE.match(file):
        engine = _AUTOGRAD_ENGINE.search(function)
        return f"{file}({line}): {engine[0]}" if engine else ""
    return f"{file}({line}): {function}".replace(";", ",")


def program_phase_of_stack(stack: str) -> str | None:
    """Returns the phase, one of `PROGRAM_PHASES`, in which a call stack occurs; None if unknown.

    The innermost frame with a phase decides, but any other phase outweighs `forward`: a backward
    pass may call a module.

    >>> program_phase_of_stack("torch/optim/adamw.py(9): step;train.py(3): main")
    'optimizing'
    >>> program_phase_of_stack("net.py(3): forward;torch/nn/modules/module.py(1518): _call_impl")
    'forward'
    """
    shown = [
        phase
        for frame in stack.split(";")
        for phase, pattern in _FRAME_PATTERN_BY_PHASE.items()
        if pattern.match(frame)
    ]
    strong = [phase for phase in shown if phase != "forward"]
    return next(iter(strong or shown), None)
