"""The step is bound by dispatching operators, because each is small.

## What it means
A step runs very many short operators. On a device each is a launch, and the device has finished it
before the host has issued the next; on a CPU the dispatch of an operator takes longer than its
arithmetic. Loading, collections, compilation, logging, optimizers and loops over elements have
rules of their own and do not count here.

In the trace: more than 60 operators a step. On a device, issuing work causes most of its idle time;
on a CPU the median operator takes below 12 us, and operators above 50 us less than 30 % of the
step.

## Why it costs
Python, the dispatcher and a launch take 5 to 20 us an operator, a short kernel 2 to 10 us. A faster
device changes nothing.

## What to do
First remove what makes the host wait, then give it less to issue: larger batches; `torch.compile`,
which makes one kernel of a chain of operators, on a GPU with `mode="reduce-overhead"`, which
replays all of them as one CUDA graph; fused operators such as `scaled_dot_product_attention`,
`layer_norm`, and `fused=True` or `foreach=True` optimizers.

The estimate leaves, of the host's time to issue work, 15 % on a device; on a CPU, besides products
of matrices, 20 %, or 60 % in training. On a CPU each call of compiled code costs as well: 0.01 ms,
and 0.1 ms with its backward pass. Of seven programs in training five were slower compiled, so that
the interval holds a loss there, and confidence is low.
Where a step calls the model several times, and each call could take its samples from one batch, one
call issues as many operators as all. The high end of the interval holds that, and operators that
are joined by hand, of which 20 % remain in training, too: of three programs that were repaired so,
each saved 1.8 to 2.4 times the estimate.

## Fires on
On a CPU: very many short operators, and hardly anything else.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababababababababababababababababababababababababababab
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward

On a device: kernels that are done before the next is launched.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababababababababababababababababababababababababababab
    call 1 | abababababababababababababababababababababababababababababababababababababab
    gpu 7  |  b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward

## Silent on
The same beside operators that work.

    column = 5 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | ababababababababababababababababababababababababababababababmmmmmmmmmmmmmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward
    m = aten::mm

A device that has work all the time.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababababababababababababababababababababababababababab
    call 1 | ab
    gpu 7  |  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selftime import names
from selftime.advice.detectors.counted_steps import counted_step_count, times_of_slices_named
from selftime.advice.detectors.model_calls import (
    model_calls_per_step,
    most_calls_of_one_module_per_step,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.detectors.work_dispatching import (
    DispatchAnalysis,
    dispatch_analysis_of,
    is_device_bound_without_recording,
)
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Argument, Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.savings.estimates import estimated_saving_of_recorded_step
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.call_tree.training_passes import takes_gradients_of_gradients
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.intervals import Intervals, length, subtract
from selftime.trace import Trace
from selftime.units import count_text, whole_percent_text

DISPATCH_TIME_SHARE_WITH_DEVICE_GRAPHS: Final = 0.15
"""Assumed share of the host's dispatch time that remains if CUDA graphs are replayed."""

DISPATCH_TIME_SHARE_IF_COMPILED: Final = 0.5
"""Assumed share of the host's dispatch time that remains in compiled code without CUDA graphs."""

FUSED_INFERENCE_TIME_SHARE: Final = 0.2
"""Share of the CPU time in small operators, matrix products excepted, that remains in compiled
inference; 0.06 to 0.33 were measured."""

FUSED_TRAINING_TIME_SHARE: Final = 0.6
"""Share of the CPU time in small operators, matrix products excepted, that remains in compiled
training; 0.6 to 0.8 were measured."""

MIN_FUSIBLE_OPERATOR_TIME_SHARE: Final = 0.5
"""Smallest share of operator time outside of matrix products to report; compilers fuse no
products."""

MIN_SAVED_STEP_SHARE_ON_CPU: Final = 0.1
"""Smallest share of the step that compiling must save on a CPU; compiling takes 5 s and more."""

COMPILED_INFERENCE_CALL_MS: Final = 0.01
"""Time in ms that each call of compiled code takes besides its operators, without gradients: its
guards. 40 calls of a function of four operators took 0.010 ms a call, more than in eager mode."""

COMPILED_TRAINING_CALL_MS: Final = 0.1
"""The same with gradients, with the backward pass. A step of a network of three layers took 0.29 ms
in place of 0.17 ms, 30 calls of a cell with its backward passes 0.09 ms a call."""

MIN_MODEL_CALLS_TO_BATCH: Final = 4
"""Fewest calls of the model a step that are told as such: fewer are its parts, or a second view."""

LOSS_SHARE_OF_STEP_IN_TRAINING: Final = 0.3
"""By how much of a step's time compiled code may make a step of training longer on a CPU. Measured
on seven programs, compiled by uncompiled: 0.58, 0.98, 1.07, 1.12, 1.28, 1.34 and 1.66 times."""

MOST_ADDED_FACTOR: Final = 2.0
"""How many times as long these may take on another machine."""

FIX_CODE: Final = """\
model.compile()  # in place: makes one kernel of many operators
# on a GPU, one launch of many kernels, too:
model.compile(mode="reduce-overhead")"""
"""Example code of the fix: the two modes of `torch.compile` that help. In place, methods of the
model that call it run what is compiled, too."""

DEVICE_GRAPH_FIX_CODE: Final = """graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):  # after some steps on a side stream
    step(static_batch)
graph.replay()  # with each batch copied into static_batch"""
"""Example code of the fix where gradients of gradients keep the model from being compiled."""

LAUNCH_AT_ONCE_FIX_CODE: Final = 'model = torch.compile(model, mode="reduce-overhead")'
"""Example code of the fix where compiled code runs already: one launch of many kernels."""


@rule(covers=("D1", "J9"), needs=("operators",), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    dispatching = dispatch_analysis_of(trace)
    if step_stats is None or not dispatching.is_dispatch_bound:
        yield Checked(
            "issuing many small operators or kernels does not bound the step", is_absent=True
        )
    elif dispatching.is_token_decoding:
        yield Checked("each step makes a token of a language model; see `eager_decoding`")
    elif (
        dispatching.on_device
        and trace.frame_args.height
        and is_device_bound_without_recording(trace, dispatching)
    ):
        yield Checked("launches are late only because the recording of stacks slows the host")
    elif dispatching.on_device:
        where = "the device waits for launches"
        yield _finding(
            trace, step_stats, dispatching, _dispatch_time_if_compiled_on_device(dispatching), where
        )
    else:
        yield _outcome_on_cpu(trace, step_stats, dispatching)


@dataclass(frozen=True, slots=True)
class _DispatchTimeIfCompiled:
    """Host intervals in operator dispatch, and the share of them that remains if compiled."""

    dispatch_times: Intervals
    kept_share: float
    """Expected share of the dispatch time that remains if compiled, 0 to 1."""
    largest_kept_share: float
    """Share of the dispatch time that remains if compiling helps least, 0 to 1."""
    added_ms: float = 0.0
    """Time in ms that calls of compiled code add to a step without profiler."""
    most_added_ms: float = 0.0
    """The same if compiling helps least."""
    is_sure: bool = True
    """Whether compiled code is hardly ever slower."""
    model_calls: float = 1.0
    """How often a step calls one module; one call of all samples leaves that part of the dispatch
    time."""

    def best_case(self, every_dispatch: Intervals) -> CutHostTime:
        """Returns what is saved at best: all calls as one, else operators joined by hand.

        These need no guards, nor compiled backward passes: they leave what fusing does without.
        """
        if 1 / self.model_calls < FUSED_INFERENCE_TIME_SHARE:
            return CutHostTime(every_dispatch, 1 / self.model_calls)
        return CutHostTime(self.dispatch_times, min(self.kept_share, FUSED_INFERENCE_TIME_SHARE))


def _dispatch_time_if_compiled_on_device(dispatching: DispatchAnalysis) -> _DispatchTimeIfCompiled:
    return _DispatchTimeIfCompiled(
        dispatching.dispatch_times,
        DISPATCH_TIME_SHARE_WITH_DEVICE_GRAPHS,
        DISPATCH_TIME_SHARE_IF_COMPILED,
    )


def _outcome_on_cpu(
    trace: Trace, step_stats: StepStatistics, dispatching: DispatchAnalysis
) -> Outcome:
    """Returns the rule's outcome for a program whose operators all run on the CPU."""
    if times_of_slices_named(
        trace, lambda name: names.compiled_region(name) is not None
    ).starts.size:
        return Checked("the small operators run in compiled code, or between regions of it")
    products = covered_time(filter_by_name(dispatching.operators, names.is_matrix_operator))
    every = length(covered_time(dispatching.operators))
    if every - length(products) < MIN_FUSIBLE_OPERATOR_TIME_SHARE * every:
        return Checked("the small operators are mostly products of matrices, which nothing fuses")
    if takes_gradients_of_gradients(trace):
        return Checked(
            "`torch.compile` does not support the gradients of gradients that the program takes; "
            "fewer and larger operators would help"
        )
    trains = filter_by_name(trace.slices, names.is_backward_node).height > 0
    keep = FUSED_TRAINING_TIME_SHARE if trains else FUSED_INFERENCE_TIME_SHARE
    call_ms = COMPILED_TRAINING_CALL_MS if trains else COMPILED_INFERENCE_CALL_MS
    added_ms = call_ms * model_calls_per_step(trace)
    loss_ms = LOSS_SHARE_OF_STEP_IN_TRAINING * step_stats.step_ms if trains else 0.0
    compiled = _DispatchTimeIfCompiled(
        subtract(dispatching.dispatch_times, products),
        keep,
        (1 + keep) / 2,
        added_ms,
        max(MOST_ADDED_FACTOR * added_ms, loss_ms),
        not trains,
        most_calls_of_one_module_per_step(trace),
    )
    claim = _compilation_claim(dispatching, compiled)
    recorded = estimated_saving_of_recorded_step(trace, claim)
    if recorded.estimate_ms < MIN_SAVED_STEP_SHARE_ON_CPU * step_stats.step_ms:
        least = whole_percent_text(MIN_SAVED_STEP_SHARE_ON_CPU)
        return Checked(
            f"compiling would likely save less than {least} of a step, and take seconds "
            "before the first",
            recorded.upper_ms,
        )
    return _finding(trace, step_stats, dispatching, compiled, "dispatch takes most of the step")


def _compilation_claim(
    dispatching: DispatchAnalysis, compiled: _DispatchTimeIfCompiled
) -> RemovalClaim:
    return RemovalClaim(
        (CutHostTime(compiled.dispatch_times, compiled.kept_share),),
        worst_case_changes=(CutHostTime(compiled.dispatch_times, compiled.largest_kept_share),),
        best_case_changes=(compiled.best_case(dispatching.dispatch_times),),
        largest_changes=(CutHostTime(dispatching.dispatch_times),),
        added_ms=compiled.added_ms,
        most_added_ms=compiled.most_added_ms,
    )


def _finding(
    trace: Trace,
    step_stats: StepStatistics,
    dispatching: DispatchAnalysis,
    compiled: _DispatchTimeIfCompiled,
    reason: str,
) -> Finding:
    most = next(
        slices_by_line(trace, dispatching.operators), LineSlices.as_one_group(dispatching.operators)
    )
    spent = step_stats.scaled_to_typical_step(
        length(dispatching.dispatch_times) / counted_step_count(trace) / 1e6
    )
    count = dispatching.operators_per_step
    return Finding(
        covers=("D1",) if dispatching.on_device else ("J9",),
        title=f"The step issues {count_text(count)} small operators, and {reason}",
        where=most.where,
        count_per_step=count,
        claim=_compilation_claim(dispatching, compiled),
        confidence="medium" if compiled.is_sure else "low",
        evidence=(
            *dispatching.evidence(spent, most.events()),
            Evidence("median host time of an operator", dispatching.median_operator_ns / 1e6, "ms"),
        ),
        semantics="numerics",
        fix=_fix(
            trace,
            ("" if most.where.line is None else "; the named line issues most")
            + _batching_text(compiled.model_calls),
        ),
    )


def _batching_text(model_calls: float) -> str:
    """Returns the end of the fix's sentence, and that one call may do the work of several."""
    if model_calls < MIN_MODEL_CALLS_TO_BATCH:
        return "."
    return (
        f". A step calls the model {count_text(model_calls)} times: where no call needs the result "
        "of another, call it once with all samples in one batch, which saves most."
    )


def _fix(trace: Trace, end: str) -> Fix:
    """Returns the fix; where compiled code runs already, what is left is to launch it at once."""
    is_compiled = times_of_slices_named(trace, lambda name: names.compiled_region(name) is not None)
    if is_compiled.starts.size:
        return Fix(
            f"Compiled code runs already: let it launch its kernels as one, or compile more{end}",
            LAUNCH_AT_ONCE_FIX_CODE,
        )
    if takes_gradients_of_gradients(trace):
        return Fix(
            "Replay the step as a CUDA graph, or use fewer, larger operators; `torch.compile` does "
            f"not support gradients of gradients{end}",
            DEVICE_GRAPH_FIX_CODE,
        )
    return Fix(
        "Compile the model, which takes seconds to minutes once, or use fewer, larger "
        f"operators{end}",
        FIX_CODE,
        Argument("loop", "compile", "True"),
    )
