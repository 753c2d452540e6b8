"""What the tests of retrievers share."""

from search_fixtures import no_pauses, settings_here

__all__ = ["no_pauses", "settings_here"]
