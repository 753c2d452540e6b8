"""What an import would store, as text."""

from __future__ import annotations

from spanlab.cli.tables import aligned
from spanlab.results import counted
from spanlab.schema import Item
from spanlab.workflows.previewing import ImportPreview
from spanlab.workflows.process_nodes import Stages, stages_of

_LONGEST = 100  # characters of a text that are shown


def shown(preview: ImportPreview) -> str:
    """Return the recognised format, the first records, and what they have and lack."""
    annotators = ", ".join(f"{name} ({kind}, {n:,})" for name, kind, n in preview.annotators)
    among = "" if preview.is_all else "the first "
    lines = [
        f"format: {', '.join(preview.formats)}",
        f"annotators: {annotators or 'none'}",
        f"passages: in {preview.with_passages:,} of {among}{counted(preview.read, 'item')}",
        *(part for item in preview.items for part in ("", _item(item))),
    ]
    if preview.rejects:
        lines += ["", f"left out: {counted(len(preview.rejects), 'bad record')}, the first because"]
        lines.append(preview.rejects[0].reason)
    return "\n".join(lines)


def _item(item: Item) -> str:
    passages = [passage.text for passage in item.passages]
    rows = [
        ["id", item.id],
        ["language", item.lang],
        ["question", item.question],
        ["answer", item.answer],
        *([f"passage {number}", text] for number, text in enumerate(passages[:3], start=1)),
        *([["", f"and {len(passages) - 3:,} more passages"]] if len(passages) > 3 else []),
        *([["process", _stages(stages)]] if (stages := stages_of(item)) else []),
        *([["meta", ", ".join(item.meta)]] if item.meta else []),
    ]
    return aligned([[name, _short(text)] for name, text in rows], left=2)


def _stages(stages: Stages) -> str:
    return ", ".join(f"{name}: {size:,}" for name, size in stages.sizes.items())


def _short(text: str) -> str:
    line = "".join(c if c.isprintable() else "·" for c in " ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
