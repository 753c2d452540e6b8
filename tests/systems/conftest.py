"""Systems on the scripted server."""

from detector_fixtures import make, settings
from search_fixtures import no_pauses

__all__ = ["make", "no_pauses", "settings"]
