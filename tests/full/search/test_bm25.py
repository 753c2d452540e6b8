"""Searching a local corpus: an index is whole or refused, and finds what shares rare words."""

from __future__ import annotations

import asyncio
from pathlib import Path

from spanlab.search.base import retrieve
from spanlab.search.index import build
from spanlab.search.local_search import bm25


def test_every_question_of_mushroom_finds_its_own_context(shared: Path, tmp_path: Path) -> None:
    """Real texts in ten languages: the passage that was retrieved for a question is found by it."""
    from spanlab.formats import ReadOptions, read

    for lang, least in (("en", 48), ("zh", 48), ("ar", 47), ("hi", 47), ("fi", 47)):
        folder = shared / "mushroom" / "context" / f"{lang}-val.v2_perplexity-sonar-pro"
        build(folder, tmp_path / lang)
        found = bm25(tmp_path / lang)
        options = ReadOptions(on_warning=lambda _text: None)
        records = read(shared / "mushroom" / "val" / f"mushroom.{lang}-val.v2.jsonl", options)
        right = 0
        for record in records:
            passages = asyncio.run(retrieve(record.item, found)).passages
            right += bool(passages) and passages[0].title == f"{record.item.id}.context"
        assert right >= least, lang
