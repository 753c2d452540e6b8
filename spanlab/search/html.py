"""The words of a web page, without its machinery: one pass over its text, whatever its markup.

Nothing is built of a page but its words, so that neither deep nesting nor tags without an end cost
more than their length.
"""

from __future__ import annotations

import codecs
import html
import io
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from bs4 import UnicodeDammit
from bs4.dammit import EncodingDetector

from spanlab.search.results import PageDate

_LEFT_OUT = frozenset(
    "title script style nav noscript template iframe svg button".split()  # noqa: SIM905 - a list of words
)

_BLOCKS = frozenset(
    "address article aside blockquote br caption dd details div dl dt fieldset figcaption figure "  # noqa: SIM905 - a list of words
    "footer form h1 h2 h3 h4 h5 h6 header hr li main ol p pre section summary table tr ul".split()
)

_DATED = frozenset(("meta", "time"))  # elements that may state when a page was published
_CELLS = frozenset(("td", "th"))

_EMPTY = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()  # noqa: SIM905 - a list of words
)

_ENOUGH = 200  # bytes from which on a guess at the encoding is better than the commonest one
_HEAD = 16_384  # bytes in which an encoding is declared

_DECLARED = re.compile(
    rb"<\s*+(?:meta\b[^>]{1,500}?charset|\?xml\b[^>]{1,500}?encoding)\s*+=\s*+[\"']?([\w:.-]{1,40}+)",
    re.IGNORECASE,
)

# The WHATWG's Encoding Standard, §4.2, by Python's names; punycode, utf-7 and others are not there.
_ENCODINGS = frozenset(
    "ascii big5 big5hkscs cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp866 "  # noqa: SIM905 - a list of words
    "cp874 cp932 cp949 euc_jp euc_kr gb18030 gb2312 gbk iso2022_jp iso8859-1 iso8859-10 iso8859-11 "
    "iso8859-13 iso8859-14 iso8859-15 iso8859-16 iso8859-2 iso8859-3 iso8859-4 iso8859-5 "
    "iso8859-6 iso8859-7 iso8859-8 iso8859-9 koi8-r koi8-u mac-cyrillic mac-roman shift_jis "
    "tis-620 utf-16 utf-16-be utf-16-le utf-8 utf-8-sig".split()
)

# Names of theirs that Python knows by another.
_ALIASES = {
    "iso-8859-8-i": "iso8859-8",
    "unicode-1-1-utf-8": "utf-8",
    "windows-31j": "cp932",
    "windows-874": "cp874",
    "windows-949": "cp949",
    "x-gbk": "gbk",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-sjis": "cp932",
}

_SPACE = re.compile(r"\s+")
_ATTRIBUTES = 4_096  # characters of a tag in which attributes are looked for
_QUOTED = 10_000  # characters of a quoted attribute in which a tag may stand

_MARK = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<[!?][^>]*+>?"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/<>]*+)"
    rf"(?P<rest>(?>(?:[^<>\"']++|\"[^\"]{{0,{_QUOTED}}}+\"|'[^']{{0,{_QUOTED}}}+'|[\"'])*))>?",
    re.DOTALL,
)

_RAW_END = {
    name: re.compile(rf"</{name}\b|\Z", re.IGNORECASE) for name in ("script", "style", "title")
}

_ATTRIBUTE = re.compile(r"""([^\s"'=<>/]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s>]++))""")
# Elements that may end without a tag, whose end is not known, and those that scripts show.
_NEVER_HIDDEN = frozenset(("html", "body", *"li dd dt tr td th option".split()))  # noqa: SIM905 - words
_HIDDEN = re.compile(r"(?:^|\s)hidden(?:$|[\s=/])", re.IGNORECASE)
_VALUE = re.compile(r"=\s*+(?:\"[^\"]*+\"?|'[^']*+'?|[^\s>]++)")
_UNDISPLAYED = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{8,};?")  # of no character, and none to convert


class ParsedPage(NamedTuple):
    """What a page says, its title and address, and the day it was published (``PageDate.day``)."""

    text: str
    title: str | None
    url: str | None
    date: str | None = None


def read_html(data: bytes, charset: str = "") -> ParsedPage:
    """Read an HTML page in whatever encoding it declares or has.

    Args:
        data: the file's bytes; broken markup is read as far as it goes.
        charset: the encoding that came with it; empty if none did.

    Returns:
        The text with a paragraph per block, without scripts, styles and navigation; empty if
        there is none. The title, canonical address and day of publication if the page has them.
    """
    markup = decode_page(data, charset)
    reading = _PageReading()
    at = 0
    while mark := _MARK.search(markup, at):
        reading.add_text(markup[at : mark.start()])
        at = mark.end()
        name = (mark["name"] or "").lower()
        if name and mark["end"]:
            reading.close(name)
        elif name:
            reading.open(name, mark["rest"])
            if name in _RAW_END and (end := _RAW_END[name].search(markup, at)):
                reading.add_raw_text(name, markup[at : end.start()])
                at = end.start()
    reading.add_text(markup[at:])
    return ParsedPage(reading.text(), reading.title or None, reading.url, reading.date.day)


def decode_page(data: bytes, charset: str = "") -> str:
    """Decode a page by the encoding that came with it, that it declares, or that fits it.

    Encodings are those that browsers know; another name counts as none.
    """
    data, mark = EncodingDetector.strip_byte_order_mark(data)
    declared = _DECLARED.search(data, 0, _HEAD)
    names = (charset, mark or "", declared[1].decode("latin-1") if declared else "", "utf-8")
    for encoding in filter(None, map(_python_encoding, names)):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return decode_by_guess(data)


def decode_by_guess(data: bytes) -> str:
    """Decode text that is not UTF-8 by what its bytes look like; what fits nothing is replaced."""
    if len(data) >= _ENOUGH:
        named = EncodingDetector.find_declared_encoding(data[:_HEAD])  # that of XML
        page = UnicodeDammit(data, exclude_encodings=[named] if named else [])
        if page.unicode_markup and _python_encoding(page.original_encoding or ""):
            return page.unicode_markup
    return data.decode("cp1252", errors="replace")


def _python_encoding(name: str) -> str:
    """Return Python's name of an encoding that browsers know by a name; empty for any other."""
    try:
        codec = codecs.lookup(_ALIASES.get(name.lower(), name)).name
    except (LookupError, ValueError):
        return ""
    return codec if codec in _ENCODINGS else ""


class _PageReading:
    """What was read of a page so far, and which elements are open."""

    def __init__(self) -> None:
        self.title = ""
        self.url: str | None = None
        self.date = PageDate()
        self._is_linked_data = False
        self._open: list[str] = []
        self._names: Counter[str] = Counter()  # of the open elements
        self._hidden = 0  # how many elements are open outside of the one that is left out; 0: none
        self._words = io.StringIO()  # of the blocks that have ended
        self._block = io.StringIO()

    def add_text(self, text: str) -> None:
        """Add text between two marks; line ends of the source mean nothing."""
        if text and not self._hidden:
            self._block.write(_unescape(text))

    def open(self, name: str, attributes: str) -> None:
        """Note the start of an element."""
        if name in _BLOCKS and self._open[-1:] == ["p"]:
            self.close("p")  # which no block stands in
        self._part_words(name)
        if name == "link" and self.url is None:
            self.url = _canonical(_parse_attributes(attributes))
        # What is left out, such as navigation, may have the date of another article.
        elif not self._hidden and (
            name in _DATED or "datepublished" in attributes[:_ATTRIBUTES].lower()
        ):
            self.date.read_element(name, _parse_attributes(attributes))
        self._is_linked_data = name == "script" and "ld+json" in attributes[:_ATTRIBUTES].lower()
        if name not in _EMPTY:
            self._open.append(name)
            self._names[name] += 1
            if not self._hidden and (name in _LEFT_OUT or _is_hidden(name, attributes)):
                self._hidden = len(self._open)

    def close(self, name: str) -> None:
        """Note the end of an element, with which those inside it end; one not open has none."""
        if self._names[name]:
            while True:
                innermost = self._open.pop()
                self._names[innermost] -= 1
                if innermost == name:
                    break
            if len(self._open) < self._hidden:
                self._hidden = 0
        self._part_words(name)

    def add_raw_text(self, name: str, text: str) -> None:
        """Add what stands in an element that holds no markup."""
        if name == "title" and not self.title and self._hidden == len(self._open):
            self.title = " ".join(_unescape(text).split())
        if self._is_linked_data:
            self.date.read_linked_data(text)

    def text(self) -> str:
        """Return the words of the whole page."""
        self._part_words("br")
        return self._words.getvalue()

    def _part_words(self, name: str) -> None:
        """Part words where an element begins or ends, if it is one that does."""
        if name in _CELLS:
            self._block.write(" ")
        elif name in _BLOCKS and self._block.tell():
            words = _SPACE.sub(" ", self._block.getvalue()).strip()
            self._block = io.StringIO()
            if words:
                self._words.write(f"\n\n{words}" if self._words.tell() else words)


def _unescape(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


def _parse_attributes(attributes: str) -> dict[str, str]:
    """Return the attributes of an element by their names in lower case."""
    return {
        name.lower(): html.unescape(double or single or bare)
        for name, double, single, bare in _ATTRIBUTE.findall(attributes[:_ATTRIBUTES])
    }


def _is_hidden(name: str, attributes: str) -> bool:
    """Say whether readers do not see an element, by its own attributes."""
    if name in _NEVER_HIDDEN or not attributes:
        return False
    said = attributes[:_ATTRIBUTES]
    style = _parse_attributes(said).get("style", "") if "style" in said.lower() else ""
    return bool(_UNDISPLAYED.search(style) or _HIDDEN.search(_VALUE.sub("", said)))


def _canonical(attributes: Mapping[str, str]) -> str | None:
    """Return the address in the attributes of a link, if it is the page's own."""
    of_page = "canonical" in attributes.get("rel", "").lower().split()
    return attributes.get("href") if of_page else None
