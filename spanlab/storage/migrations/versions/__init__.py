"""One file per revision, named by its number and what it brings."""
