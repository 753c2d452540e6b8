"""The command line: `spanlab COMMAND`.

Its exit status is 0, 1 (wrong input, or all that was to be done failed), 2 (wrong usage) or 3 (some
items failed, or a budget ended the run early; what was done is kept).
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from spanlab.base.errors import (
    BudgetError,
    DeprecatedWarning,
    SpanlabError,
    UnnamedModelError,
    UsageError,
)
from spanlab.base.redaction import bound_logs, visible


def main() -> None:
    """Run the command line; our own errors become one line on stderr and an exit status."""
    # Products of matrices are small here: numpy's threads wait for each other, and a third of the
    # processor time of a comparison went there. Read when numpy is imported, by children too.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    bound_logs()
    _tell_of_deprecations()
    _tell_of_misspelt_variables()
    try:
        _run()
    except UsageError as error:
        or_here = ", or pass --model NAME" if isinstance(error, UnnamedModelError) else ""
        sys.exit(_say(f"{error}{or_here}", 2))
    except SpanlabError as error:
        sys.exit(_say(str(error), 3 if isinstance(error, BudgetError) else 1))
    except OSError as error:
        # Files that are read or written say so themselves; this is standard output, mostly.
        status = _say(f"{error.filename or 'standard output'}: {error.strerror or error}", 1)
        _drop_output()
        sys.exit(status)


def _tell_of_deprecations() -> None:
    """Have what a later version takes away said in one line on stderr, once each."""
    show_warning = warnings.showwarning

    def tell_warning(
        message: Warning | str, category: type[Warning], *place: Any, **kwargs: Any
    ) -> None:
        if issubclass(category, DeprecatedWarning):
            _say(str(message), 0)
        else:
            show_warning(message, category, *place, **kwargs)

    warnings.showwarning = tell_warning
    warnings.simplefilter("once", DeprecatedWarning)


def _tell_of_misspelt_variables() -> None:
    if any(name.startswith("SPANLAB_") for name in os.environ):  # else nothing is imported for it
        from spanlab.base.settings import misspelt

        for remark in misspelt():
            _say(remark, 0)


def _run() -> None:
    from spanlab.cli.app import app

    try:
        app(prog_name="spanlab")  # also as `python -m spanlab`
    except SystemExit as end:
        # The reader of our output (`head`, say) has seen enough; typer calls that a failure.
        if isinstance(end.__context__, BrokenPipeError):
            _drop_output()
            sys.exit(0)
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            _say("stopped by Ctrl+C", 0)  # of which typer says nothing
        raise


def _say(message: str, status: int) -> int:
    sys.stderr.write(f"spanlab: {visible(message)}\n")
    return status


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter's end does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
