"""Local networks: their checkpoints, their tokens, and what runs them; no detector itself."""
