"""Systems on the scripted server."""

from detector_fixtures import make, settings

__all__ = ["make", "settings"]
