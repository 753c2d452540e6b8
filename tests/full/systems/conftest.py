"""Systems on the scripted server, and by the `spanlab` command in a directory of its own."""

from cli_fixtures import items, record, spanlab, write
from detector_fixtures import make, settings
from search_fixtures import no_pauses

__all__ = ["items", "make", "no_pauses", "record", "settings", "spanlab", "write"]
