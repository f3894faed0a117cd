"""Whose line is executing: the user's own frame on the stack, or the one of the forward pass.

In the backward pass the stack ends at `loss.backward()`. So every node of the autograd graph is
stamped with the line that made it, in the node's own metadata, which die with it.
"""

import os
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

import torch

from selftime.capture.preflight.found import Phase, Place
from selftime.capture.sources import SourceFiles

__all__ = ["Whereabouts"]

_STAMP: Final = "selftime_place"
_TORCH: Final = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep  # noqa: PTH100, PTH120 - text, as frames have it
_OURS: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - as above
_ENGINE: Final = "_engine_run_backward"
_MODULE_CALL: Final = "_call_impl"
_NOWHERE: Final = Place(None, None, None)
_MOST_NODES: Final = 10_000
"""Nodes that one call is believed to make; a graph that came from elsewhere is not walked whole."""


class Whereabouts:
    """Finds the user's line; knows whether a graph is being built or gone back through."""

    def __init__(
        self,
        own: Callable[[], Sequence[str]],
        watched: frozenset[str],
        on_gradient: Callable[[Place, Any], None],
    ) -> None:
        self._own = own
        self._watched = watched
        self._on_gradient = on_gradient
        self._files: SourceFiles | None = None
        self._known: dict[str, str | None] = {}
        self._building = False

    def here(self) -> tuple[Place, Phase]:
        """The line that is executing, and in which phase of the step."""
        node = torch._C._current_autograd_node()
        if node is None:
            place, in_module = self._on_stack(sys._getframe(1), inside_engine=False)
            return place, "forward" if in_module or self._building else "other"
        self._building = False
        place, _ = self._on_stack(sys._getframe(1), inside_engine=True)
        stamped = node.metadata.get(_STAMP) if place is _NOWHERE else None
        if stamped is not None:
            return Place(
                stamped.file, stamped.line, stamped.function, "backward", stamped.inside
            ), "backward"
        if place is _NOWHERE:
            place, _ = self._on_stack(sys._getframe(1), inside_engine=False)
        return place, "backward"

    def stamp(self, results: Sequence[torch.Tensor]) -> None:
        """Remember this line for the nodes that were just made for these tensors."""
        roots = [tensor.grad_fn for tensor in results if tensor.requires_grad]
        nodes = [node for node in roots if node is not None and _STAMP not in node.metadata]
        if not nodes:
            return
        self._building = True
        place, _ = self._on_stack(sys._getframe(1), inside_engine=False)
        for _ in range(_MOST_NODES):
            if not nodes:
                return
            node: Any = nodes.pop()
            node.metadata[_STAMP] = place
            if node.name() in self._watched:
                node.register_prehook(self._told(place))
            before = (pair[0] for pair in node.next_functions)
            nodes += [
                n
                for n in before
                if n is not None and not hasattr(n, "variable") and _STAMP not in n.metadata
            ]

    def _told(self, place: Place) -> Callable[[Any], None]:
        """Tells `on_gradient` when the backward pass comes to a node that was made there."""
        back = Place(place.file, place.line, place.function, "backward", place.inside)

        def come(grads: Any) -> None:
            self._on_gradient(back, grads)

        return come

    def _on_stack(self, frame: FrameType | None, *, inside_engine: bool) -> tuple[Place, bool]:
        """The innermost frame of the user's; up to the engine only, if inside it."""
        in_module, through = False, None
        while frame is not None:
            code = frame.f_code
            name = code.co_filename
            if name.startswith(_TORCH):
                if inside_engine and code.co_name == _ENGINE:
                    break
                in_module = in_module or code.co_name == _MODULE_CALL
            elif not name.startswith(_OURS):
                path = self._user_file(name)
                if path is not None:
                    in_module = in_module or _is_in_module(frame.f_back)
                    return Place(path, frame.f_lineno, code.co_name, "stack", through), in_module
                if through is None and not name.startswith("<") and "-packages" in name:
                    through = f"{name}:{frame.f_lineno}"
            frame = frame.f_back
        return _NOWHERE, in_module

    def _user_file(self, name: str) -> str | None:
        if name not in self._known:
            if self._files is None:
                self._files = SourceFiles(self._own())
            self._known[name] = self._files.user_file(name)
        return self._known[name]


def _is_in_module(frame: FrameType | None) -> bool:
    """Whether one of the frames is the call of a module."""
    while frame is not None:
        if frame.f_code.co_name == _MODULE_CALL and frame.f_code.co_filename.startswith(_TORCH):
            return True
        frame = frame.f_back
    return False
