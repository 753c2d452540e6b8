"""Tools that an agent may call: each takes arguments and gives passages.

Tool ────── what the agent is told of it, and what it runs
Toolbox ─── the tools of one claim: checks names, arguments, time and size of every call
"""

from __future__ import annotations

from spanlab.tools.toolbox import Tool, Toolbox, query_text

__all__ = ["Tool", "Toolbox", "query_text"]
