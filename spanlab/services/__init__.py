"""What other programs may ask spanlab for: over HTTP, and as tools of an MCP server.

offers ────── detections, verdicts on claims, passages and scores, typed as our JSON Lines are
http_api ──── the same as a JSON API with a key and limits
traces ────── what exporters of OpenTelemetry send there, into a dataset
api_jobs ──── its detections of many answers, as durable jobs
mcp_server ── the same as tools for assistants, and tool servers as sources of evidence
"""
