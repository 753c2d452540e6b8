"""`make release VERSION=…`: version and day in every file that says them."""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_UNRELEASED = "## Unreleased\n"
_PLACES = {  # each has the version on one line of its own
    "pyproject.toml": re.compile(r'^version = "(.+)"$', re.MULTILINE),
    "CITATION.cff": re.compile(r"^version: (.+)$", re.MULTILINE),
}
_RELEASED = re.compile(r"^date-released: .+$", re.MULTILINE)


def set_version(version: str, day: date, root: Path = ROOT) -> None:
    """Write a version into the project's files; nothing is written unless all is right.

    Args:
        version: such as ``1.2.3``, higher than the project's.
        day: of the release.
        root: the folder of the repository.

    Raises:
        ValueError: it is no version or no higher one, or nothing is under "Unreleased".
    """
    texts = {name: (root / name).read_text(encoding="utf-8") for name in _PLACES}
    before = _PLACES["pyproject.toml"].findall(texts["pyproject.toml"])[0]
    if not _VERSION.fullmatch(version) or _numbers(version) <= _numbers(before):
        raise ValueError(f"VERSION={version}: expected three numbers, higher than {before}")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    head, _, rest = changes.partition(_UNRELEASED)
    if not rest.partition("\n## ")[0].strip():
        raise ValueError("CHANGELOG.md: nothing is under Unreleased; expected: what users see")
    texts["CHANGELOG.md"] = f"{head}{_UNRELEASED}\n## {version} ({day})\n{rest}"
    for name, place in _PLACES.items():
        old = place.search(texts[name])
        assert old is not None
        texts[name] = texts[name][: old.start(1)] + version + texts[name][old.end(1) :]
    texts["CITATION.cff"] = _RELEASED.sub(f"date-released: {day}", texts["CITATION.cff"])
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


if __name__ == "__main__":
    try:
        set_version(sys.argv[1], datetime.now(UTC).date())
    except ValueError as error:
        sys.exit(str(error))
