"""Answers an agent over the Model Context Protocol: the views and the advice as tools.

It opens traces below the paths that it was started with and nothing else, writes nothing, and uses
no network. What comes from a trace is quoted: it is data, whatever it says.
"""

from selftime.mcp.library import Library
from selftime.mcp.tool_handlers import Desk

__all__ = ["Desk", "Library"]
