"""Results on pages: tables, their charts and files."""
