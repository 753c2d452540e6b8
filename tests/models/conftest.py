"""Choices of the scripted model."""

from models_fixtures import cache, choose

__all__ = ["cache", "choose"]
