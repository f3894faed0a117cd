"""Finds the bytecode on source lines that did not run in a step recorded with a mark per line.

Such a line may have run in a recorded step and called the same operators as a line that did run;
then the line of those operators is ambiguous (see `marked_lines`).
"""

import dis
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Final, NamedTuple

FUNCTION_START_LINE: Final = 0
"""Used instead of a line number for the start of a function and for where a generator resumes."""

ANY_OPERATOR_SYNTAX: Final = ""
"""Syntax text of an instruction, such as a call, that may run any torch operator."""

SUBSCRIPT_SYNTAX: Final = "[]"
TRUTH_VALUE_SYNTAX: Final = "truth"

_FUNCTION_EXIT_OPCODES: Final = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
)
_UNCONDITIONAL_JUMP_OPCODES: Final = frozenset(
    {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"}
)
_SUFFIXES_OF_SUBSCRIPT_OPCODES: Final = ("_SUBSCR", "_SLICE")
_SYNTAX_BY_UNARY_OPCODE: Final[Mapping[str, str]] = {
    "UNARY_NEGATIVE": "-x",
    "UNARY_INVERT": "~x",
    "UNARY_NOT": TRUTH_VALUE_SYNTAX,
    "TO_BOOL": TRUTH_VALUE_SYNTAX,
}
_PREFIXES_OF_CALLING_OPCODES: Final = ("CALL", "LOAD_ATTR", "STORE_ATTR", "CONTAINS_OP")
_SIGN_BY_PYTHON_310_BINARY_OPCODE: Final[Mapping[str, str]] = {
    "ADD": "+",
    "SUBTRACT": "-",
    "MULTIPLY": "*",
    "TRUE_DIVIDE": "/",
    "FLOOR_DIVIDE": "//",
    "MODULO": "%",
    "POWER": "**",
    "MATRIX_MULTIPLY": "@",
    "AND": "&",
    "OR": "|",
    "XOR": "^",
}
"""Maps Python 3.10's instruction names to the operator's sign; later versions have `BINARY_OP`
instead."""


class SkippedInstruction(NamedTuple):
    """An instruction on a line that did not run, and the lines that may run before and after it."""

    syntax: str
    """The operator's sign in the source, such as `+`, or a constant such as `SUBSCRIPT_SYNTAX`."""
    lines_before: frozenset[int]
    """Lines from which execution may reach the instruction without another recorded call."""
    lines_after: frozenset[int]
    """Lines that execution may reach from the instruction without another recorded call."""


def skipped_instructions(
    code: CodeType, executed_lines: Iterable[int], call_lines: Iterable[int]
) -> set[SkippedInstruction]:
    """Returns the instructions outside of `executed_lines` that may call a torch operator.

    `call_lines` are the lines whose calls are recorded.
    """
    flow = _control_flow_of_code(code, frozenset(call_lines))
    executed = frozenset(executed_lines)
    found = set()
    for index, instruction in enumerate(flow.instructions):
        if instruction.syntax is not None and instruction.line not in executed:
            before = flow.lines_reachable_without_recorded_call(index, flow.predecessors)
            after = flow.lines_reachable_without_recorded_call(index, flow.successors)
            found.add(SkippedInstruction(instruction.syntax, before, after))
    return found


class _DecodedInstruction(NamedTuple):
    line: int
    syntax: str | None
    is_recorded_call: bool


@dataclass(slots=True)
class _ControlFlow:
    """The instructions of a function and, for each, those that may run directly before and after.

    The first entry stands for the start of the function.
    """

    instructions: list[_DecodedInstruction]
    successors: list[list[int]]
    predecessors: list[list[int]]

    def lines_reachable_without_recorded_call(
        self, start: int, neighbours: list[list[int]]
    ) -> frozenset[int]:
        """Returns the lines reachable from instruction `start` without passing a recorded call."""
        seen = {start}
        pending = [start]
        while pending:
            for index in neighbours[pending.pop()]:
                if index not in seen:
                    seen.add(index)
                    if not self.instructions[index].is_recorded_call:
                        pending.append(index)
        return frozenset(self.instructions[index].line for index in seen)


def _control_flow_of_code(code: CodeType, call_lines: frozenset[int]) -> _ControlFlow:
    decoded = list(dis.get_instructions(code))
    index_of_offset = {each.offset: index for index, each in enumerate(decoded, 1)}
    lines = _line_of_each_instruction(code, decoded)
    instructions = [_DecodedInstruction(FUNCTION_START_LINE, None, is_recorded_call=False)]
    successors: list[list[int]] = [[1]]
    for index, (each, line) in enumerate(zip(decoded, lines, strict=True), 1):
        is_recorded = each.opname.startswith("CALL") and line in call_lines
        instructions.append(
            _DecodedInstruction(
                line, _operator_syntax_of_instruction(each), is_recorded_call=is_recorded
            )
        )
        following = []
        if each.opname not in _FUNCTION_EXIT_OPCODES | _UNCONDITIONAL_JUMP_OPCODES and index < len(
            decoded
        ):
            following.append(index + 1)
        is_jump = each.opcode in dis.hasjrel or each.opcode in dis.hasjabs
        if is_jump and each.argval in index_of_offset:
            following.append(index_of_offset[each.argval])
        successors.append(following)
        if each.opname in {"YIELD_VALUE", "SEND"} and index < len(decoded):
            successors[0].append(index + 1)
    predecessors: list[list[int]] = [[] for _ in instructions]
    for index, following in enumerate(successors):
        for other in following:
            predecessors[other].append(index)
    return _ControlFlow(instructions, successors, predecessors)


def _line_of_each_instruction(code: CodeType, instructions: list[dis.Instruction]) -> list[int]:
    """Returns each instruction's line number; if it has none, the previous instruction's."""
    line_of_offset = {}
    for begin, end, line in code.co_lines():
        if line is not None:
            line_of_offset.update(dict.fromkeys(range(begin, end, 2), line))
    lines, line = [], code.co_firstlineno
    for instruction in instructions:
        line = line_of_offset.get(instruction.offset, line)
        lines.append(line)
    return lines


def _operator_syntax_of_instruction(instruction: dis.Instruction) -> str | None:
    """Returns the Python operator, such as `+`, of an instruction; None if it calls none."""
    name = instruction.opname
    if name == "BINARY_OP":
        sign = instruction.argrepr.removesuffix("=")
        return SUBSCRIPT_SYNTAX if sign.startswith("[") else sign
    if name == "COMPARE_OP":
        return str(instruction.argval).removeprefix("bool(").removesuffix(")")
    if name.endswith(_SUFFIXES_OF_SUBSCRIPT_OPCODES):
        return SUBSCRIPT_SYNTAX
    if name.startswith(("BINARY_", "INPLACE_")):
        return _SIGN_BY_PYTHON_310_BINARY_OPCODE.get(name.partition("_")[2], ANY_OPERATOR_SYNTAX)
    if "JUMP_IF" in name and "NONE" not in name:
        return TRUTH_VALUE_SYNTAX
    fallback = ANY_OPERATOR_SYNTAX if name.startswith(_PREFIXES_OF_CALLING_OPCODES) else None
    return _SYNTAX_BY_UNARY_OPCODE.get(name, fallback)
