"""Interpret names for memory analysis: nested allocations, and the phase of an allocation."""

import re
from typing import Final

_BARE: Final = re.compile(r"aten::empty(?:$|[_.])")
_ACCUMULATION: Final = re.compile(
    r"(?:autograd::engine::evaluate_function: )?torch::autograd::AccumulateGrad"
)
_BUILDING: Final = re.compile(
    r"(?:.*/)?torch/nn/(?:init\.py\(\d+\): \w+_"
    r"|(?:modules/[^:]*|parameter\.py\(\d+\))"
    r": (?:__init__|__new__|_apply|convert|reset_parameters))$"
)

PHASES: Final = ("loading", "optimizing", "backward", "building", "forward")
"""The phases of a program that the frames of a stack can show."""
_FRAMES_OF: Final = {
    "loading": re.compile(r"(?:.*/)?torch/utils/data/"),
    "optimizing": re.compile(r"(?:.*/)?torch/optim/"),
    "backward": re.compile(
        r"(?:.*/)?torch/(?:autograd/graph\.py\(\d+\): _engine_run_backward"
        r"|(?:autograd/__init__|_tensor)\.py\(\d+\): (?:backward|grad))$"
        r"|.*torch::autograd::Engine"
    ),
    "building": _BUILDING,
    "forward": re.compile(r"(?:.*/)?torch/nn/modules/"),
}
_NATIVE: Final = re.compile(
    r"(?:\?\?)?$|.*\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|inl|S|so(?:\.\d+)*)$", re.IGNORECASE
)
_ENGINE: Final = re.compile(r"torch::autograd::Engine::\w+")


def is_bare_allocation(name: str) -> bool:
    """Whether an operator only allocates, on behalf of the operator that called it.

    >>> is_bare_allocation("aten::empty_strided"), is_bare_allocation("aten::zeros")
    (True, False)
    """
    return _BARE.match(name) is not None


def accumulates_gradient(name: str) -> bool:
    """Whether an operator is the autograd node that adds to a parameter's gradient.

    >>> accumulates_gradient("torch::autograd::AccumulateGrad")
    True
    """
    return _ACCUMULATION.match(name) is not None


def calls_backward(frame: str) -> bool:
    """Whether a Python frame is in a call of autograd's `backward` or `grad`.

    >>> calls_backward("torch/autograd/graph.py(825): _engine_run_backward")
    True
    >>> calls_backward("torch/_tensor.py(625): backward"), calls_backward("net.py(5): backward")
    (True, False)
    """
    return _FRAMES_OF["backward"].match(frame) is not None


def builds_module(frame: str) -> bool:
    """Whether a Python frame creates or moves the parameters of a module.

    >>> builds_module("torch/nn/modules/module.py(927): _apply")
    True
    >>> builds_module("torch/nn/modules/module.py(1518): __call__")
    False
    """
    return _BUILDING.match(frame) is not None


def stack_frame(file: str, line: int, function: str) -> str:
    """Returns an allocator's stack frame in the profiler's format; empty if not Python.

    Of native frames only those of autograd's engine are kept: they show a backward pass.

    >>> stack_frame("train.py", 12, "step"), stack_frame("??", 0, "PyEval_Eval")
    ('train.py(12): step', '')
    >>> stack_frame("engine.cpp", 0, "torch::autograd::Engine::thread_main(...)")
    'engine.cpp(0): torch::autograd::Engine::thread_main'
    """
    if _NATIVE.match(file):
        engine = _ENGINE.search(function)
        return f"{file}({line}): {engine[0]}" if engine else ""
    return f"{file}({line}): {function}".replace(";", ",")


def stack_phase(stack: str) -> str | None:
    """Returns the phase of the program that a stack shows, one of `PHASES`, or None.

    The innermost frame with a phase decides, but any other phase outweighs `forward`: a backward
    pass may call a module.

    >>> stack_phase("torch/optim/adamw.py(9): step;train.py(3): main")
    'optimizing'
    >>> stack_phase("net.py(3): forward;torch/nn/modules/module.py(1518): _call_impl")
    'forward'
    """
    shown = [
        phase
        for frame in stack.split(";")
        for phase, pattern in _FRAMES_OF.items()
        if pattern.match(frame)
    ]
    strong = [phase for phase in shown if phase != "forward"]
    return next(iter(strong or shown), None)
