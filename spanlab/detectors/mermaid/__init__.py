"""MERMAID: an agent with tools, and a memory of evidence that spares it searches."""
