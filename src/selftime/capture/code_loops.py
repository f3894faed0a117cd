"""Finds the loops of a function in its bytecode."""

import dis
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Final

from selftime.capture.code_flow import control_flow, is_jump

MAX_CODES_WITH_KNOWN_LOOPS: Final = 2_000
"""Largest number of code objects whose loops are cached."""

_INSTRUCTION_BYTES: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class CodeLoop:
    """A `for` or `while` loop: a range of bytecode that ends with a jump back to its start."""

    code: CodeType
    start: int
    """Offset in bytes of the loop's first repeated instruction."""
    end: int
    """Offset in bytes of the last instruction that jumps back to the start; since Python 3.12, of
    the last one that is no exception handler's, which stand behind all other instructions."""
    jumps: frozenset[int]
    """Offsets in bytes of all instructions that jump back to the start, and of the prefixes
    (`EXTENDED_ARG`) of such an instruction: the interpreter traces only the first of these."""
    line: int
    """Line number of the loop's `for` or `while`."""

    def contains(self, offset: int) -> bool:
        return self.start <= offset <= self.end

    @property
    def takes_next_at_start(self) -> bool:
        """Returns whether the start takes the next item, so that the loop may also end there."""
        code, offset = self.code.co_code, self.start
        while code[offset] == dis.EXTENDED_ARG:
            offset += _INSTRUCTION_BYTES
        return code[offset] == dis.opmap["FOR_ITER"]


_known_loops: dict[int, tuple[CodeType, tuple[CodeLoop, ...]]] = {}
"""Cache of loops by `id(code)`; each entry also keeps the code object alive, so that its `id`
stays unique."""


def code_loops(code: CodeType) -> tuple[CodeLoop, ...]:
    """Returns the loops of a code object, each outer loop before the loops inside it.

    The same code always has the same objects, so that loops can be compared by identity.
    """
    known = _known_loops.get(id(code))
    if known is None:
        if len(_known_loops) >= MAX_CODES_WITH_KNOWN_LOOPS:
            _known_loops.clear()
        known = _known_loops[id(code)] = (code, _find_loops(code))
    return known[1]


def _find_loops(code: CodeType) -> tuple[CodeLoop, ...]:
    flow = control_flow(code)
    jumps_by_start: dict[int, set[int]] = {}
    prefixes: set[int] = set()
    for instruction in dis.get_instructions(code):
        offset = instruction.offset
        if instruction.opcode == dis.EXTENDED_ARG:
            prefixes.add(offset)
            continue
        if (
            is_jump(instruction)
            and instruction.argval <= offset
            and offset not in flow.reachable_offsets(without=instruction.argval)
        ):
            jumps_by_start.setdefault(instruction.argval, set()).update(prefixes, {offset})
        prefixes.clear()
    line_by_offset = _line_by_offset(code)
    loops = []
    for start, jumps in jumps_by_start.items():
        end = max(jumps & flow.offsets_before_handlers or jumps)
        line = min(_values_between(line_by_offset, start, end))
        loops.append(CodeLoop(code, start, end, frozenset(jumps), line))
    return tuple(sorted(loops, key=lambda loop: (loop.start, -loop.end)))


def _line_by_offset(code: CodeType) -> dict[int, int]:
    line_starts = dict(dis.findlinestarts(code))
    found, line = {}, code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = found[instruction.offset] = line_starts.get(instruction.offset) or line
    return found


def _values_between(value_by_offset: dict[int, int], start: int, end: int) -> list[int]:
    return [value for offset, value in value_by_offset.items() if start <= offset <= end]


def loops_at(code: CodeType, offset: int) -> tuple[CodeLoop, ...]:
    """Returns the loops that contain the instruction at a bytecode offset, the outermost first."""
    return tuple(loop for loop in code_loops(code) if loop.contains(offset))


def loops_on_stack(innermost_frame: FrameType | None) -> tuple[CodeLoop, ...]:
    """Returns all loops that the frames of a stack are executing, the outermost first."""
    loops: list[CodeLoop] = []
    frame = innermost_frame
    while frame is not None:
        loops[:0] = loops_at(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return tuple(loops)
