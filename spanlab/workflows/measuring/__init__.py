"""Measurements by reviewed samples: corrected rates, gates, certificates, errors of people."""
