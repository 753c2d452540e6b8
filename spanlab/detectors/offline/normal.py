"""Normal forms of words and numbers: used for matching only, never for offsets.

``fold`` makes spellings of one word equal, ``readings`` makes spellings of one number equal, and
``blank_marks`` takes citation marks and Markdown out of a passage without moving a character.
"""

from __future__ import annotations

import re
import unicodedata

# Arabic and Persian write the same letters with different code points; hamzas and the madda go
# with the combining marks below. The tatweel and the joiners are no letters at all.
_VARIANTS = str.maketrans(
    {"ى": "ي", "ی": "ي", "ک": "ك", "ە": "ه", "ہ": "ه", "ھ": "ه", "ة": "ه", "ـ": ""}
    | dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad", "")
)

# A list ordinal, a heading, a bullet or a quote sign at the start of a line.
_LINE_MARK = r"^[ \t]*(?:#{1,6}[ \t]|[-*+•>][ \t]|\d{1,2}[.)][ \t])+"
_CITED = r"\[\^?\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*\]"  # [1], [1, 4], [2-5], [^3]
_CITATION = re.compile(_CITED)
_MARKS = re.compile(
    rf"{_LINE_MARK}"
    rf"|{_CITED}"
    r"|(?<=\])\([^()\s]{1,2000}\)"  # the address of a Markdown link
    r"|[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}"
    r"|[\[\]|]",
    re.MULTILINE,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:([.,'’\s])\d{3})(?:\1\d{3})*")
_SEPARATORS = re.compile(r"[.,'’\s]")


def fold(text: str) -> str:
    """Return a word as it is compared: case, accents, digits and letter variants unified.

    Combining marks go by their canonical combining class: accents (200 and above), Hebrew and
    Arabic points (10 to 36) and the nukta (7) are dropped; vowel signs of Indic and Thai script
    (class 0 and others) are letters in all but name and stay. A word of marks and joiners alone
    becomes empty.
    """
    if text.isascii():
        return text.casefold()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(c for c in decomposed if not _is_dropped(unicodedata.combining(c)))
    return _ascii_digits(kept.translate(_VARIANTS))


def readings(number: str) -> frozenset[str]:
    """Return every value a written number may stand for, in one plain spelling.

    Digits may be of any script, with inner separators: ``1,234.5``, ``1 234``, ``१८८२``. ``1.234``
    may be ``1234`` or ``1.234``, so it has two values; ``3,50`` has one, ``3.5``. A number that
    fits no pattern reads as its bare digits; leading zeros are dropped.
    """
    text = fold(number).replace("٬", "'").replace("٫", ".")
    found = set()
    if not _SEPARATORS.search(text):
        found.add(_plain(text, ""))
    if _THOUSANDS.fullmatch(text):
        found.add(_plain(_SEPARATORS.sub("", text), ""))
    whole, fraction = _split_decimal(text)
    if fraction and (_THOUSANDS.fullmatch(whole) or not _SEPARATORS.search(whole)):
        found.add(_plain(_SEPARATORS.sub("", whole), fraction))
    return frozenset(found or {_plain(_SEPARATORS.sub("", text), "")})


def blank_marks(text: str) -> str:
    """Return ``text`` with citation marks and Markdown overwritten by spaces.

    The length stays the same, so every offset into the result is an offset into ``text``. List
    ordinals go too: they would make the numbers 1 to 9 look supported.
    """
    return _MARKS.sub(lambda found: " " * len(found.group()), text)


def blank_citations(text: str) -> str:
    """Return ``text`` with citation marks such as ``[1]`` or ``[2, 5]`` overwritten by spaces."""
    return _CITATION.sub(lambda found: " " * len(found.group()), text)


def _is_dropped(combining_class: int) -> bool:
    return combining_class >= 200 or 10 <= combining_class <= 36 or combining_class == 7


def _ascii_digits(text: str) -> str:
    if text.isascii() or not any(c.isdigit() for c in text):
        return text
    return "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in text)


def _split_decimal(text: str) -> tuple[str, str]:
    """Split at the last separator if it can be a decimal one (a comma or a point)."""
    place = max(text.rfind("."), text.rfind(","))
    return (text[:place], text[place + 1 :]) if place > 0 else (text, "")


def _plain(whole: str, fraction: str) -> str:
    whole = whole.lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
