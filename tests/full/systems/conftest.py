"""Systems on the scripted server, and by the `spanlab` command in a directory of its own."""

from cli_fixtures import items, record, spanlab, write
from detector_fixtures import make, settings

__all__ = ["items", "make", "record", "settings", "spanlab", "write"]
