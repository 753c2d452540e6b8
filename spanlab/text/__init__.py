"""Where words stand in a text: extents, labels, tokens, and quotes mapped to their places."""
