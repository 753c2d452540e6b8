"""What fits one verdict: as much of the evidence as a limit allows (§3.1.3 of the paper).

Limits are of two kinds: sentences, which a person sets, and tokens, which the model takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spanlab.detectors.veritrail.selection import Selected
from spanlab.lm import count_tokens

_KEPT_FREE: Final = 2_000  # tokens of the instruction, the claim, its parts, and the answer
_CAUTION: Final = 0.8  # tokens are estimated, and too few are counted for some scripts


def room_of(window: int | None) -> float:
    """Return how many estimated tokens of evidence a verdict's prompt takes.

    Args:
        window: tokens that prompt and answer may have, None if nobody knows.

    Returns:
        At least one token; without a known window infinity.
    """
    return float("inf") if window is None else max(_CAUTION * window - _KEPT_FREE, 1.0)


def largest(selected: Sequence[Selected], most: int) -> Sequence[Selected]:
    """Return the selections, in order, with most sentences together, at most ``most``.

    Where those that fit as a whole leave room, the first of the others fills it with its first
    sentences, which then stand for themselves in place of its summary.
    """
    kept: dict[int, tuple[int, ...]] = {0: ()}  # by their number of sentences; the first that came
    for index, chosen in enumerate(selected):
        for count, indices in list(kept.items()):
            if (more := count + len(chosen.sentences)) <= most:
                kept.setdefault(more, (*indices, index))
    count = max(kept)
    fit = {index: selected[index] for index in kept[count]}
    others = (index for index in range(len(selected)) if index not in fit)
    first = next(others, None)
    if first is not None and count < most:
        fit[first] = part_of(selected[first], most - count)
    return [fit[index] for index in sorted(fit)]


def part_of(selected: Selected, most: int) -> Selected:
    """Return the first ``most`` sentences of a selection; they are their own summary."""
    sentences = selected.sentences[:most]
    return replace(selected, sentences=sentences, summary=" ".join(each.text for each in sentences))


@dataclass(frozen=True)
class FittingTexts:
    """What a verdict is given of some texts, by name and in order, and what it is not.

    ``cut`` are the names of those of which only a part is shown, ``left_out`` those that are not
    shown at all.
    """

    shown: Mapping[str, str]
    cut: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def remark(self, room: float) -> str | None:
        """Say what does not fit ``room`` tokens; None if all is shown."""
        said = (
            f"{len(names)} of {len(self.shown) + len(self.left_out)} texts {what}"
            for names, what in (
                (self.cut, "were judged by a part of them"),
                (self.left_out, "were left out"),
            )
            if names
        )
        told = " and ".join(said)
        return f"{told}: a verdict takes about {room:,.0f} tokens of evidence" if told else None


def fitting(whole: Mapping[str, str], parts: Mapping[str, str], room: float) -> FittingTexts:
    """Choose which texts are shown whole, which by a part, and which not.

    Every text is shown at least by its part as long as these fit, the shortest first; what room
    is left goes to whole texts, again the shortest first.

    Args:
        whole: texts by name, in the order in which they are shown.
        parts: of some of them what matters most; one without a part is shown whole or not.
        room: estimated tokens of all that is shown.
    """
    sizes = {name: count_tokens(text) for name, text in whole.items()}
    least = {name: count_tokens(parts[name]) if name in parts else sizes[name] for name in whole}
    used, kept = 0, set[str]()
    for name in sorted(whole, key=lambda name: least[name]):
        if used + least[name] <= room:
            used += least[name]
            kept.add(name)
    complete = set[str]()
    for name in sorted(kept, key=lambda name: sizes[name]):
        if used - least[name] + sizes[name] <= room:
            used += sizes[name] - least[name]
            complete.add(name)
    return FittingTexts(
        {
            name: text if name in complete else parts[name]
            for name, text in whole.items()
            if name in kept
        },
        tuple(name for name in whole if name in kept - complete),
        tuple(name for name in whole if name not in kept),
    )


def closest_fitting(ranked: Mapping[str, str], room: float) -> FittingTexts:
    """Choose the first of some texts that fit together.

    Args:
        ranked: texts by name, the closest first. Of one that alone is too long, the beginning is
            shown.
        room: estimated tokens of all that is shown.
    """
    shown, used = dict[str, str](), 0.0
    names = list(ranked)
    for name, text in ranked.items():
        size = count_tokens(text)
        if shown and used + size > room:
            break
        shown[name] = text if size <= room else text[: int(len(text) * room / size)]
        used += size
    cut = tuple(name for name, text in shown.items() if text != ranked[name])
    return FittingTexts(shown, cut, tuple(names[len(shown) :]))
