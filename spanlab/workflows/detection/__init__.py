"""Detectors chosen, estimated, and run on datasets, records and files."""
