"""Papelo: a claim is pursued question by question, each answered from the web."""
