"""Detectors × datasets in one table that can be made again: cards, plan, cells, table."""
