"""One reader and one writer per file format."""
