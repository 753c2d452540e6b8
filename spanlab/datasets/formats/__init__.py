"""The formats of files: one file for each, or for some that are alike."""
