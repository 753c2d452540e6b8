"""Errors and warnings in the words of Python, where rooms below name options of the command."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from spanlab.base.errors import SpanlabError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_COMMAND: Final = r"`spanlab [^`]*`|\bspanlab [a-z-]+ [^;,\n]*"  # stays as it is
_VALUE: Final = r"'[^']*'|[\w.<>={},…-]*(?:[=<>\d]|[A-Z]{2})[\w.<>={},…-]*|none\b"
_SAID: Final = re.compile(
    rf"(?P<command>{_COMMAND})|--(?P<name>[a-z][a-z-]+)(?: (?P<value>{_VALUE}))?"
)
_ALONE: Final = re.compile(r"[;,] --skip-bad [^;,\n]*")  # what the command alone has


def in_keywords(text: str) -> str:
    """Return an error's words with options of the command as keyword arguments.

    ``--encoding latin-1`` becomes ``encoding="latin-1"``, ``--column answer=reply``
    ``columns={"answer": "reply"}``, and ``--again`` ``again``. Whole commands stay.
    """
    return _SAID.sub(_keyword, _ALONE.sub("", text))


def _keyword(said: re.Match[str]) -> str:
    if said["command"]:
        return said["command"]
    name, value = said["name"].replace("-", "_"), (said["value"] or "").strip("'")
    if name == "column":
        field, _, column = value.partition("=")
        return f'columns={{"{field}": "{column}"}}' if value else "columns"
    return f'{name}="{value}"' if value else name


def python_door(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function whose errors name keyword arguments."""

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except SpanlabError as error:
            error.reword(in_keywords)
            raise

    return called
