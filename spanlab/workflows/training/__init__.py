"""Detectors trained and calibrated on one's own labels, and checkpoints for them."""
