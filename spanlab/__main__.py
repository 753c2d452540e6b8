"""`python -m spanlab`: the command `spanlab`, where that is on no path."""

from __future__ import annotations

from spanlab.cli import main

if __name__ == "__main__":
    main()
