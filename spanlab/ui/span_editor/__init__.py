"""The span editor: the only bridge to JavaScript."""
