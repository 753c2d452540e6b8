"""What the tests of retrievers share."""

from search_fixtures import settings_here

__all__ = ["settings_here"]
