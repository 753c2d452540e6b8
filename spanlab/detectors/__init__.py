"""One module per published system that finds hallucinated spans."""
