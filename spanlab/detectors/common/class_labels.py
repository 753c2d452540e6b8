"""What the classes of a checkpoint mean, by what its configuration calls them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from spanlab.errors import InputError

_SUPPORTED: Final = frozenset(
    (
        "supported",
        "support",
        "supports",
        "entailment",
        "entail",
        "entailed",
        "consistent",
        "factual",
        "faithful",
        "grounded",
        "correct",
    )
)
_REFUTED: Final = frozenset(
    ("contradiction", "contradict", "contradicted", "contradictory", "refuted", "refutes")
)
_UNSUPPORTED: Final = _REFUTED | {
    "baseless",
    "hallucinated",
    "hallucination",
    "inconsistent",
    "incorrect",
    "neutral",
    "nonfactual",
    "not_entailment",
    "not_enough_info",
    "not_factual",
    "not_supported",
    "unfaithful",
    "ungrounded",
    "unsupported",
}
_GENERIC: Final = re.compile(r"(label_)?\d+")


def supported_labels(labels: Sequence[str], setting: str, place: str | Path) -> frozenset[int]:
    """Return which classes mean that something is supported.

    Args:
        labels: the classes in order.
        setting: their names or numbers, parted by commas; empty to go by what they are called.
        place: the checkpoint, for the message.

    Raises:
        InputError: a name is none of them, all or none are meant, or names do not tell.
    """
    known = [_plain(label) for label in labels]
    if setting.strip():
        wanted = [part.strip() for part in setting.split(",") if part.strip()]
        found = frozenset(_index(part, labels, place) for part in wanted)
    else:
        found = frozenset(at for at, label in enumerate(known) if label in _SUPPORTED)
        others = [label for label in known if label not in _SUPPORTED]
        if not found or not _UNSUPPORTED.issuperset(others):
            raise InputError(
                "it is not known which labels mean “supported”",
                file=place,
                found=", ".join(labels) or "no labels",
                expected="supported=LABEL"
                + (
                    " (LettuceDetect: LABEL_0; MiniCheck: 1)"
                    if all(map(_GENERIC.fullmatch, known))
                    else ""
                ),
            )
    if not found or len(found) == len(labels):
        raise InputError(
            "some labels have to mean “supported” and some not",
            file=place,
            found=", ".join(labels),
        )
    return found


def refuted_labels(labels: Iterable[str]) -> frozenset[int]:
    """Return which classes mean that a text contradicts a statement; empty if none is called so."""
    return frozenset(at for at, label in enumerate(labels) if _plain(label) in _REFUTED)


def _plain(label: str) -> str:
    return re.sub(r"[\s-]+", "_", label.strip().casefold())


def _index(part: str, labels: Sequence[str], place: str | Path) -> int:
    for at, label in enumerate(labels):
        if _plain(label) == _plain(part):
            return at
    if part.isdecimal() and int(part) < len(labels):
        return int(part)
    raise InputError(
        "there is no such label", file=place, found=part, expected=f"one of {', '.join(labels)}"
    )
