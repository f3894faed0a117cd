"""Finds the line of the user's code that is executing, also during the backward pass.

In the backward pass the stack contains only `loss.backward()`. Therefore the line that created each
node of the autograd graph is stored in the node's metadata, which are freed with the node.
"""

# ruff: noqa: SLF001 - torch has no public API for autograd nodes and the stack

import dis
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import torch

from selftime.capture.lines.sources import INSTALLED_PACKAGE_FOLDER_NAMES, SourceFiles
from selftime.capture.preflight.results import StepPhase, UserSourceLocation

_NODE_METADATA_KEY_OF_ORIGIN_LINE: Final = "selftime_origin"
_TORCH_FOLDER: Final = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep  # noqa: PTH100, PTH120 - text, as frames have it
_PREFLIGHT_FOLDER: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - as above
_NAME_OF_BACKWARD_ENGINE_FUNCTION: Final = "_engine_run_backward"
_NAME_OF_MODULE_CALL_FUNCTION: Final = "_call_impl"
_PREFIXES_OF_TRUTH_VALUE_OPCODES: Final = ("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT")
"""Name prefixes of bytecode instructions that use a value as a condition."""
_UNKNOWN_LOCATION: Final = UserSourceLocation(None, None, None)
_MAX_AUTOGRAD_NODES_VISITED_PER_CALL: Final = 10_000
"""Largest number of autograd nodes that are visited after one call; the call cannot have created
more."""


@dataclass(frozen=True, slots=True)
class CurrentUserLine:
    """The line of the user's code that is executing, and the files of torch that it has called."""

    location: UserSourceLocation
    in_module: bool
    """Whether a call of an `nn.Module` is on the stack."""
    torch_files: frozenset[str]
    """Files of torch, relative to its folder, that the user's line has called and that still
    run."""
    phase: StepPhase = "other"
    code: CodeType | None = None
    instruction: int = 0
    """Bytecode offset of the executing instruction in the user's frame."""

    @property
    def reads_condition(self) -> bool:
        """Returns whether the instruction uses a value as a condition, as `if` and `while` do."""
        if self.code is None or not 0 <= self.instruction < len(self.code.co_code):
            return False
        return dis.opname[self.code.co_code[self.instruction]].startswith(
            _PREFIXES_OF_TRUTH_VALUE_OPCODES
        )


class UserFrameFinder:
    """Finds the executing line of the user's code, and whether the forward pass is running.

    Args:
        user_paths: Returns folders or files that count as the user's although they are installed.
        reads_on_host: Whether the gradient of an autograd node reads a value on the host.
        on_gradient: Called with line, node name and gradients when such a gradient is computed.
    """

    def __init__(
        self,
        user_paths: Callable[[], Sequence[str]],
        reads_on_host: Callable[[Any], bool],
        on_gradient: Callable[[UserSourceLocation, str, Any], None],
    ) -> None:
        self._user_paths = user_paths
        self._reads_on_host = reads_on_host
        self._on_gradient = on_gradient
        self._files: SourceFiles | None = None
        self._user_files: dict[str, str | None] = {}
        self.is_forward = False
        """Whether the forward pass is running: autograd nodes were created since the last
        gradient was computed."""

    def find_current_line(self) -> CurrentUserLine:
        """Returns the executing line of the user's code, and the phase of the step."""
        node: Any = torch._C._current_autograd_node()
        frame = sys._getframe(1)
        if node is None:
            current = self._innermost_user_frame(frame, inside_engine=False)
            forward = current.in_module or self.is_forward
            return replace(current, phase="forward" if forward else "other")
        current = self._innermost_user_frame(frame, inside_engine=True)
        if current.location is _UNKNOWN_LOCATION:  # no frame of the user's inside the backward pass
            origin = node.metadata.get(_NODE_METADATA_KEY_OF_ORIGIN_LINE)
            if origin is not None:
                current = replace(current, location=replace(origin, how="backward"))
            else:
                current = self._innermost_user_frame(frame, inside_engine=False)
        return replace(current, phase="backward")

    def record_origin_of_results(self, results: Sequence[torch.Tensor]) -> None:
        """Stores the current line in the autograd nodes that this call created for `results`."""
        roots: list[Any] = [tensor.grad_fn for tensor in results if tensor.requires_grad]
        nodes = [
            node
            for node in roots
            if node is not None and _NODE_METADATA_KEY_OF_ORIGIN_LINE not in node.metadata
        ]
        if not nodes:
            return
        if torch._C._current_autograd_node() is None:
            self.is_forward = True
        location = self._innermost_user_frame(sys._getframe(1), inside_engine=False).location
        for _ in range(_MAX_AUTOGRAD_NODES_VISITED_PER_CALL):
            if not nodes:
                return
            node = nodes.pop()
            node.metadata[_NODE_METADATA_KEY_OF_ORIGIN_LINE] = location
            if self._reads_on_host(node):
                node.register_prehook(self._hook_that_reports_gradient(location, node.name()))
            before = (pair[0] for pair in node.next_functions)
            nodes += [
                n
                for n in before
                if n is not None
                and not hasattr(n, "variable")
                and _NODE_METADATA_KEY_OF_ORIGIN_LINE not in n.metadata
            ]

    def _hook_that_reports_gradient(
        self, location: UserSourceLocation, name: str
    ) -> Callable[[Any], None]:
        """Returns an autograd hook that calls `on_gradient(location, name)`."""
        back = replace(location, how="backward")

        def hook(grads: Any) -> None:
            self._on_gradient(back, name, grads)

        return hook

    def _innermost_user_frame(
        self, frame: FrameType | None, *, inside_engine: bool
    ) -> CurrentUserLine:
        """Returns the innermost line of the user's code; optionally only within `backward()`."""
        in_module, package_line, torch_files = False, None, set()
        while frame is not None:
            code = frame.f_code
            name = code.co_filename
            if name.startswith(_TORCH_FOLDER):
                if inside_engine and code.co_name == _NAME_OF_BACKWARD_ENGINE_FUNCTION:
                    break
                in_module = in_module or code.co_name == _NAME_OF_MODULE_CALL_FUNCTION
                torch_files.add(name[len(_TORCH_FOLDER) :])
            elif not name.startswith(_PREFLIGHT_FOLDER):
                path = self._user_file(name)
                if path is not None:
                    in_module = in_module or _is_called_by_module(frame.f_back)
                    location = UserSourceLocation(
                        path, frame.f_lineno, code.co_name, "stack", package_line
                    )
                    return CurrentUserLine(
                        location,
                        in_module,
                        frozenset(torch_files),
                        code=code,
                        instruction=frame.f_lasti,
                    )
                if package_line is None:
                    package_line = _line_in_package(name, frame.f_lineno)
            frame = frame.f_back
        return CurrentUserLine(_UNKNOWN_LOCATION, in_module, frozenset(torch_files))

    def _user_file(self, name: str) -> str | None:
        if name not in self._user_files:
            if self._files is None:
                self._files = SourceFiles(self._user_paths())
            self._user_files[name] = self._files.user_file(name)
        return self._user_files[name]


def _line_in_package(name: str, line: int) -> str | None:
    """Returns `FILE:LINE`, relative to the folder of packages, of a package's file, else None."""
    parts = Path(name).parts
    for folder in INSTALLED_PACKAGE_FOLDER_NAMES.intersection(parts):
        return f"{'/'.join(parts[parts.index(folder) + 1 :])}:{line}"
    return None


def _is_called_by_module(frame: FrameType | None) -> bool:
    """Returns whether `nn.Module.__call__` is on the stack that ends with this frame."""
    while frame is not None:
        if (
            frame.f_code.co_name == _NAME_OF_MODULE_CALL_FUNCTION
            and frame.f_code.co_filename.startswith(_TORCH_FOLDER)
        ):
            return True
        frame = frame.f_back
    return False
