"""Datasets: import, settings, versions, the bin, backups, reports and exports."""
