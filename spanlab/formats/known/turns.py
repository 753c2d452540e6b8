"""The turns of a chat within one trace, such as a loop of questions inside one span.

A turn begins where a model's call reads what an earlier call answered, and behind that something
new from the user. Only spans that were given no question and gave no answer may lie around both:
an agent that corrects itself is one turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from spanlab.formats.known.conventions import USERS
from spanlab.formats.known.spans import (
    Span,
    input_of,
    messages_of,
    output_of,
    text_asked,
    text_said,
)
from spanlab.formats.known.trace import ABOUT, Trace, replies_of


def turns_in(spans: Sequence[Span]) -> list[tuple[int, list[Span]]]:
    """Return the turns of a trace with their numbers from 1; all of it as 0 if it is one run.

    What lies around all turns is none of them; what it says of session and user, each has.
    """
    trace = Trace(spans)
    ends, around = list[int](), dict[object, Span]()
    for shared, answered in _answered(trace):
        ends.append(answered["end"])
        around |= {span["id"]: span for span in shared}
    if not ends:
        return [(0, list(spans))]
    ends = sorted(set(ends))
    groups: list[list[Span]] = [[] for _ in range(len(ends) + 1)]
    group_of: dict[object, list[Span]] = {}
    for span in trace.order:
        if span["id"] in around:
            continue
        group = group_of.get(span.get("parent"))
        if group is None:
            group = groups[bisect_right(ends, span["start"])]
            group.append(_inheriting(span, list(around.values())))
        else:
            group.append(span)
        group_of[span["id"]] = group
    answering = {call["id"] for call in trace.answering}
    turns = [group for group in groups if any(span["id"] in answering for span in group)]
    return list(enumerate(turns, start=1))


def _answered(trace: Trace) -> Iterator[tuple[list[Span], Span]]:
    """Yield what lies around two turns, and the part of it that ends with the earlier answer."""
    said: dict[str, Span] = {}
    for call in trace.answering:
        read = messages_of(call, read=True)
        asked = max((n for n, message in enumerate(read) if message.role in USERS), default=0)
        earlier = next((said[m.text] for m in reversed(read[:asked]) if m.text in said), None)
        if earlier is not None and read[asked].text not in said:
            shared, inside = _fork(trace.path(earlier), trace.path(call))
            if inside and all(map(_says_nothing, shared)):
                yield shared, inside[0]
        said |= {message.text: call for message in replies_of(call)}


def _fork(path: Sequence[Span], other: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """Return what two paths have in common, and what the first has behind that."""
    common = [span for span, same in zip(path, other, strict=False) if span is same]
    return common, list(path[len(common) :])


def _says_nothing(span: Span) -> bool:
    return not text_asked(input_of(span)) and not text_said(output_of(span))


def _inheriting(span: Span, around: Sequence[Span]) -> Span:
    names = {name for sources in ABOUT.values() for name in sources}
    inherited: dict[str, object] = {}
    for outer in around:
        inherited |= {name: v for name, v in outer["attributes"].items() if name in names}
    return {**span, "attributes": {**inherited, **span["attributes"]}}
