"""Offers the views and the advice to AI agents as tools of the Model Context Protocol.

It opens only traces below the paths that it was started with, writes nothing, and uses no network.
Text from a trace is quoted: it is data, whatever it says.
"""

from selftime.mcp.tool_handlers import ToolHandlers
from selftime.mcp.trace_library import TraceLibrary

__all__ = ["ToolHandlers", "TraceLibrary"]
