"""Choose detectors, estimate their runs, and run them on datasets, records and files."""
