"""The real `spanlab` command in a directory of its own."""

from cli_fixtures import items, record, spanlab, write

__all__ = ["items", "record", "spanlab", "write"]
