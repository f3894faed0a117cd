"""Follows the bytecode of a function: which instructions may run after which.

Since Python 3.12 the handlers of exceptions stand behind all other instructions, and jump back to
where the program goes on: such a jump makes no loop.
"""

import dis
import sys
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

_ENDS: Final = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
    | {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"}
)
"""Instructions after which the next one does not run."""
_ARE_HANDLERS_LAST: Final = sys.version_info >= (3, 12)


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """The instructions of a function, by their offsets in bytes."""

    successors: dict[int, list[int]]
    """Offsets of the instructions that may run after each one, without an exception."""
    handlers: dict[int, list[int]]
    """Offsets of the handlers of each instruction's exceptions."""

    @property
    def offsets_before_handlers(self) -> set[int]:
        """Returns the offsets of all instructions but those of handlers that stand last."""
        return self._reach({}) if _ARE_HANDLERS_LAST else set(self.successors)

    def reachable_offsets(self, *, without: int) -> set[int]:
        """Returns the offsets that may be reached without the instruction at one of them."""
        return self._reach(self.handlers, without)

    def _reach(self, handlers: dict[int, list[int]], without: int | None = None) -> set[int]:
        found: set[int] = set()
        left = [0]
        while left:
            offset = left.pop()
            if offset != without and offset not in found:
                found.add(offset)
                left += self.successors.get(offset, ())
                left += handlers.get(offset, ())
        return found


def control_flow(code: CodeType) -> ControlFlow:
    """Returns which instructions of a function may run after which."""
    bytecode: Any = dis.Bytecode(code)
    instructions = list(bytecode)
    following = [instruction.offset for instruction in instructions[1:]]
    successors: dict[int, list[int]] = {}
    for position, instruction in enumerate(instructions):
        after = [] if instruction.opname in _ENDS else following[position : position + 1]
        if is_jump(instruction):
            after.append(instruction.argval)
        successors[instruction.offset] = after
    handlers: dict[int, list[int]] = {}
    for entry in getattr(bytecode, "exception_entries", ()):  # Python 3.10 has instructions instead
        for offset in range(entry.start, entry.end, 2):
            if offset in successors:
                handlers.setdefault(offset, []).append(entry.target)
    return ControlFlow(successors, handlers)


def is_jump(instruction: dis.Instruction) -> bool:
    """Returns whether an instruction may jump to its argument."""
    return instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs
