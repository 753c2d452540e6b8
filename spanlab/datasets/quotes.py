"""Foreign offsets made into our spans, checked against the text they point into."""

from __future__ import annotations

from spanlab.errors import InputError
from spanlab.schema import Interval, Span


def check_offsets(text: str, start: int, end: int, field: str) -> None:
    """Check that ``[start, end)`` is a non-empty part of ``text``.

    Raises:
        InputError: names ``field``, the offsets and what they may be.
    """
    if not 0 <= start < end <= len(text):
        raise InputError(
            "the offsets are not a part of the answer",
            field=field,
            found=[start, end],
            expected=f"0 <= start < end <= {len(text)}",
        )


def span_at(text: str, start: int, end: int, field: str, prob: float = 1.0) -> Span:
    """Return the span ``[start, end)`` of ``text``.

    Raises:
        InputError: the offsets are not a part of ``text``.
    """
    check_offsets(text, start, end, field)
    return Span.of(text, start, end, prob=prob)


def interval_at(text: str, start: int, end: int, field: str) -> Interval:
    """Return the interval ``[start, end)`` of ``text``.

    Raises:
        InputError: the offsets are not a part of ``text``.
    """
    check_offsets(text, start, end, field)
    return Interval(start=start, end=end)


def check_quote(text: str, start: int, end: int, quoted: str, field: str) -> None:
    """Check that ``text`` has ``quoted`` at ``[start, end)``.

    Raises:
        InputError: says what stands there instead.
    """
    check_offsets(text, start, end, field)
    if text[start:end] != quoted:
        raise InputError(
            f"the quoted text is not at [{start}, {end}), where {text[start:end]!r} stands",
            field=field,
            found=quoted,
            expected="the text at these offsets, counted in characters (code points)",
        )
