"""Fixtures of the page tests: an annotation database of their own, and pages that run on it."""

from ui_fixtures import address, open_page, store, working

__all__ = ["address", "open_page", "store", "working"]
