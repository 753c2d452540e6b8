"""What an item's ``meta`` says of its claims: who said them, and when."""

from __future__ import annotations

import re
from datetime import date, timedelta

from spanlab.retrievers.dates import latest_day
from spanlab.schema import Item

_DAY_FIRST = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")


def about(item: Item, claim: str) -> str:
    """Return a claim with who said it and when, as far as the item's ``meta`` says."""
    speaker, day = item.meta.get("speaker"), item.meta.get("claim_date") or item.meta.get("date")
    said = [f"by {speaker}" if speaker else "", f"on {day}" if day else ""]
    known = " ".join(filter(None, said))
    return f"{claim} (said {known})" if known else claim


def published_before(item: Item) -> date | None:
    """Return the day after a claim's, before which evidence must be published; None if unknown."""
    written = str(item.meta.get("claim_date") or item.meta.get("date") or "")
    found = _DAY_FIRST.fullmatch(written.strip())
    try:
        day = date(int(found[3]), int(found[2]), int(found[1])) if found else latest_day(written)
    except ValueError:
        return None
    return None if day is None else day + timedelta(days=1)
