"""The page Compare: where people and detectors agree, and how well they do."""
