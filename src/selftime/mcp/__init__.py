"""Serve an agent over the Model Context Protocol: the views and the advice as tools.

It opens only traces below the paths that it was started with, writes nothing, and uses no network.
Text from a trace is quoted: it is data, whatever it says.
"""

from selftime.mcp.library import Library
from selftime.mcp.tool_handlers import ToolHandlers

__all__ = ["Library", "ToolHandlers"]
