"""How far each annotator is, as bars with the figures beside them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from spanlab.schema import Kind, Status
from spanlab.workflows.managing import AnnotatorSummary, DatasetSummary

_WORDS = {
    Status.DONE: "done",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.NOT_ANNOTATED: "not annotated",
}
_KINDS = {
    Kind.PERSON: "person",
    Kind.DETECTOR: "detector",
    Kind.VOTE: "vote",
    Kind.GOLD: "gold labels",
}
# Told apart by pattern as well as by colour; translucent, so that they suit light and dark.
_STYLE = """<style>
.counts { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(8rem, 1fr)
  max-content; gap: .4rem .9rem; align-items: center; font-size: .875rem; margin: .1rem 0 .3rem; }
.counts .who { overflow-wrap: anywhere; max-width: 16rem; line-height: 1.25; }
.counts .kind, .counts .rest { opacity: .7; }
.counts .bar { display: flex; height: .7rem; border-radius: .35rem; overflow: hidden;
  background: rgba(128, 132, 149, .22); }
.counts .bar i { display: block; min-width: 2px; }
.counts .done { background: #3b8bd1; }
.counts .skipped { background: repeating-linear-gradient(90deg, #8a8fa3 0 3px, #8a8fa333 3px 6px); }
.counts .failed { background: repeating-linear-gradient(135deg, #e5484d 0 4px, #f2a0a3 4px 7px); }
.counts .figures { font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  .counts { grid-template-columns: 1fr; gap: .2rem; }
  .counts .who { max-width: none; }
  .counts .figures { margin-bottom: .5rem; }
}
</style>"""


def counts_html(summary: DatasetSummary) -> str:
    """Return one bar per annotator of a dataset as HTML; every name in it is escaped."""
    rows = [_row(annotator, summary.n_items) for annotator in summary.annotators]
    return f"{_STYLE}<div class='counts' role='list'>{''.join(rows)}</div>"


def counts_in_words(counts: Mapping[Status, int], n_items: int) -> str:
    """Say how many items are in each state, such as "52 of 56 done · 1 failed"."""
    parts = [f"{counts.get(Status.DONE, 0):,} of {n_items:,} done"]
    parts += [
        f"{counts[status]:,} {_WORDS[status]}"
        for status in (Status.FAILED, Status.SKIPPED, Status.NOT_ANNOTATED)
        if counts.get(status)
    ]
    return " · ".join(parts)


def kind_in_words(kind: Kind) -> str:
    """Return what sort of annotator this is, in a word or two."""
    return _KINDS[kind]


def kind_beside(name: str, kind: Kind) -> str:
    """Return the sort of annotator to write beside its name; empty if the name says it."""
    words = kind_in_words(kind)
    return "" if name in words.split() else words


def _row(annotator: AnnotatorSummary, n_items: int) -> str:
    name, counts = escape(annotator.name), annotator.counts
    words = counts_in_words(counts, n_items)
    kind = kind_beside(annotator.name, annotator.kind)
    segments = "".join(
        f"<i class='{status.value}' style='width:{100 * counts[status] / n_items:.3f}%'></i>"
        for status in (Status.DONE, Status.FAILED, Status.SKIPPED)
        if counts.get(status) and n_items
    )
    head, _, rest = words.partition(" · ")
    more = f" <span class='rest'>· {rest}</span>" if rest else ""
    return (
        "<div class='row' role='listitem' style='display:contents'>"
        f"<span class='who'>{name} <span class='kind'>{kind}</span></span>"
        f"<span class='bar' aria-hidden='true' title='{words}'>{segments}</span>"
        f"<span class='figures'>{head}{more}</span></div>"
    )
