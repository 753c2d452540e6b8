"""Choices of the scripted model."""

from models_fixtures import cache, choose, four

__all__ = ["cache", "choose", "four"]
