"""`spanlab tools`: the MCP servers that `mermaid` may ask, and what they offer."""

from __future__ import annotations

from typing import Annotated

import typer


def tools(
    servers: Annotated[
        list[str] | None, typer.Argument(help="Which servers (default: all).")
    ] = None,
) -> None:
    """Start tool servers, ours and those of tools.json, to see which tools may be called.

    \b
    Ours are wikipedia, search (the services whose keys are set) and papers.
    .spanlab/tools.json (or the file that SPANLAB_TOOLS names) has yours:
      {"servers": {"wiki": {"command": ["my-server"], "tools": ["search"], "env": ["WIKI_KEY"]},
                   "notes": {"url": "http://127.0.0.1:9000/mcp", "seconds": 5},
                   "mine": {"source": "corpus", "corpus": "my-index"}}}
    \b
    spanlab tools wikipedia wiki
    spanlab annotate mine --detector mermaid --option tools=wikipedia,wiki
    """
    from spanlab.workflows.detection.models import states_of

    states = states_of(servers or ())
    for state in states:
        typer.echo(f"{state.name}: {state.problem or 'answers'}")
        for tool in state.tools:
            typer.echo(f"  {tool.name}: {' '.join(tool.description.split())}")
    if any(state.problem for state in states):
        raise typer.Exit(1)
