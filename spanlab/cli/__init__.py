"""The command line: `spanlab COMMAND`, with exit status 0, 1 (wrong input) or 2 (wrong usage)."""

from __future__ import annotations

import sys

from spanlab.errors import SpanlabError, UsageError


def main() -> None:
    """Run the command line; our own errors become one line on stderr and an exit status."""
    from spanlab.cli.commands import app

    try:
        app()
    except UsageError as error:
        sys.exit(_say(error, 2))
    except SpanlabError as error:
        sys.exit(_say(error, 1))
    except BrokenPipeError:
        # The reader of our output (`head`, say) has seen enough.
        sys.stderr.close()
        sys.exit(0)


def _say(error: SpanlabError, status: int) -> int:
    sys.stderr.write(f"spanlab: {error}\n")
    return status
