"""The description for package indexes: the README, whose pictures and links lead to the repository.

Everything else about the package stands in pyproject.toml.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

_HERE = Path(__file__).resolve().parent
_PROJECT = tomllib.loads((_HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_README = (_HERE / "README.md").read_text(encoding="utf-8")
_LINKS = re.compile(
    r"(?P<picture>!?)\[[^]]*\]\((?!https?:|#)" r'|(?P<source>\bsrc(?:set)?=")(?!https?:)'
)


def _absolute(link: re.Match[str]) -> str:
    kind = "raw" if link["picture"] or link["source"] else "blob"
    return f"{link[0]}{_PROJECT['urls']['Repository']}/{kind}/main/"


setup(
    long_description=_LINKS.sub(_absolute, _README),
    long_description_content_type="text/markdown",
)
