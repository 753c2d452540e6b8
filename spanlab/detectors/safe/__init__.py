"""SAFE: every step of a reasoning is verified, its error named, and while reasoning mended."""
