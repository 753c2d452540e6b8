"""spanlab: find, review, vote on and export hallucinated spans of LLM outputs."""
