"""Whose line is executing: the user's own frame on the stack, or the one of the forward pass.

In the backward pass the stack ends at `loss.backward()`. So every node of the autograd graph is
stamped with the line that made it, in the node's own metadata, which die with it.
"""

# ruff: noqa: SLF001 - torch has no public name for what a pretended device must answer

import dis
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import torch

from selftime.capture.lines.sources import PACKAGE_FOLDERS, SourceFiles
from selftime.capture.preflight.found import Phase, Place

_STAMP: Final = "selftime_place"
_TORCH: Final = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep  # noqa: PTH100, PTH120 - text, as frames have it
_OURS: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - as above
_ENGINE: Final = "_engine_run_backward"
_MODULE_CALL: Final = "_call_impl"
_BRANCHES: Final = ("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT")
"""How the names of instructions begin that ask for the truth of a value."""
_NOWHERE: Final = Place(None, None, None)
_MOST_NODES: Final = 10_000
"""Nodes that one call is believed to make; a graph that came from elsewhere is not walked whole."""


@dataclass(frozen=True, slots=True)
class Here:
    """What is executing."""

    place: Place
    in_module: bool
    """Whether a module is being called."""
    via: frozenset[str]
    """Files of torch, from its folder on, between the line and what it called."""
    phase: Phase = "other"
    code: CodeType | None = None
    instruction: int = 0
    """The code of the user's frame, and the offset of what it executes."""

    @property
    def branches(self) -> bool:
        """Whether the line asks for the truth of something, as `if` and `while` do."""
        if self.code is None or not 0 <= self.instruction < len(self.code.co_code):
            return False
        return dis.opname[self.code.co_code[self.instruction]].startswith(_BRANCHES)


class Whereabouts:
    """Finds the user's line; knows whether a graph is being built or gone back through."""

    def __init__(
        self,
        own: Callable[[], Sequence[str]],
        reads: Callable[[Any], bool],
        on_gradient: Callable[[Place, str, Any], None],
    ) -> None:
        self._own = own
        self._reads = reads
        self._on_gradient = on_gradient
        self._files: SourceFiles | None = None
        self._known: dict[str, str | None] = {}
        self.is_building = False
        """Whether a graph was built since the last gradient: the program goes forward."""

    def here(self) -> Here:
        """The line that is executing, and in which phase of the step."""
        node: Any = torch._C._current_autograd_node()
        frame = sys._getframe(1)
        if node is None:
            here = self._on_stack(frame, inside_engine=False)
            forward = here.in_module or self.is_building
            return replace(here, phase="forward" if forward else "other")
        here = self._on_stack(frame, inside_engine=True)
        if here.place is _NOWHERE:  # no code of the user's runs in the backward pass
            stamped = node.metadata.get(_STAMP)
            if stamped is not None:
                here = replace(here, place=replace(stamped, how="backward"))
            else:
                here = self._on_stack(frame, inside_engine=False)
        return replace(here, phase="backward")

    def stamp(self, results: Sequence[torch.Tensor]) -> None:
        """Remember this line for the nodes that were just made for these tensors."""
        roots: list[Any] = [tensor.grad_fn for tensor in results if tensor.requires_grad]
        nodes = [node for node in roots if node is not None and _STAMP not in node.metadata]
        if not nodes:
            return
        if torch._C._current_autograd_node() is None:
            self.is_building = True
        place = self._on_stack(sys._getframe(1), inside_engine=False).place
        for _ in range(_MOST_NODES):
            if not nodes:
                return
            node = nodes.pop()
            node.metadata[_STAMP] = place
            if self._reads(node):
                node.register_prehook(self._told(place, node.name()))
            before = (pair[0] for pair in node.next_functions)
            nodes += [
                n
                for n in before
                if n is not None and not hasattr(n, "variable") and _STAMP not in n.metadata
            ]

    def _told(self, place: Place, name: str) -> Callable[[Any], None]:
        """Tells `on_gradient` when the backward pass comes to a node that was made there."""
        back = replace(place, how="backward")

        def come(grads: Any) -> None:
            self._on_gradient(back, name, grads)

        return come

    def _on_stack(self, frame: FrameType | None, *, inside_engine: bool) -> Here:
        """The innermost frame of the user's; up to the engine only, if inside it."""
        in_module, through, via = False, None, set()
        while frame is not None:
            code = frame.f_code
            name = code.co_filename
            if name.startswith(_TORCH):
                if inside_engine and code.co_name == _ENGINE:
                    break
                in_module = in_module or code.co_name == _MODULE_CALL
                via.add(name[len(_TORCH) :])
            elif not name.startswith(_OURS):
                path = self._user_file(name)
                if path is not None:
                    in_module = in_module or _is_in_module(frame.f_back)
                    place = Place(path, frame.f_lineno, code.co_name, "stack", through)
                    return Here(
                        place, in_module, frozenset(via), code=code, instruction=frame.f_lasti
                    )
                if through is None:
                    through = _in_package(name, frame.f_lineno)
            frame = frame.f_back
        return Here(_NOWHERE, in_module, frozenset(via))

    def _user_file(self, name: str) -> str | None:
        if name not in self._known:
            if self._files is None:
                self._files = SourceFiles(self._own())
            self._known[name] = self._files.user_file(name)
        return self._known[name]


def _in_package(name: str, line: int) -> str | None:
    """A line of an installed package, from the folder of packages on."""
    parts = Path(name).parts
    for folder in PACKAGE_FOLDERS.intersection(parts):
        return f"{'/'.join(parts[parts.index(folder) + 1 :])}:{line}"
    return None


def _is_in_module(frame: FrameType | None) -> bool:
    """Whether one of the frames is the call of a module."""
    while frame is not None:
        if frame.f_code.co_name == _MODULE_CALL and frame.f_code.co_filename.startswith(_TORCH):
            return True
        frame = frame.f_back
    return False
