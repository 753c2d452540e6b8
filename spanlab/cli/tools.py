"""`spanlab tools`: the MCP servers that `mermaid` may ask, and what they offer."""

from __future__ import annotations

import typer


def tools() -> None:
    """List the tool servers of tools.json and start each, to see which tools may be called.

    \b
    .spanlab/tools.json (or the file that SPANLAB_TOOLS names):
      {"servers": {"wiki": {"command": ["my-server"], "tools": ["search"], "env": ["WIKI_KEY"]},
                   "notes": {"url": "http://127.0.0.1:9000/mcp", "seconds": 5}}}
    \b
    spanlab tools
    spanlab annotate mine --detector mermaid --option tools=wiki,notes
    """
    from spanlab.settings import Settings
    from spanlab.workflows.tooling import server_states

    states = server_states(Settings.read())
    for state in states:
        typer.echo(f"{state.name}: {state.problem or 'answers'}")
        for tool in state.tools:
            typer.echo(f"  {tool.name}: {' '.join(tool.description.split())}")
    if not states:
        typer.echo("No tool servers are configured; `spanlab tools --help` says how.", err=True)
    if any(state.problem for state in states):
        raise typer.Exit(1)
