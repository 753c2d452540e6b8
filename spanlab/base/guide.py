"""The guide: pages of Markdown, found by topic and by words.

They are in ``spanlab/guide``; the pages of a system are in its own folder, and go with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

from markdown_it import MarkdownIt

from spanlab.base.errors import UsageError

FOLDER = Path(__file__).resolve().parents[1] / "guide"
INDEX = "README"  # the page that forges show for the folder; its lists order the others
_ENTRY = re.compile(r"^- \[(?P<title>[^]]+)\]\((?P<topic>[\w-]+)\.md\): (?P<about>.+)$")
_APART = "Detectors"  # the pages of systems, which others lead to, and no menu
_LISTED = re.compile(r"^<!-- listed: ([^:]+): (.+?)\.? -->$", re.MULTILINE)
_LINK = re.compile(r"\[([^]]*)\]\((?:[\w.-]+/)*([\w-]+)\.md(#[\w-]+)?\)")
_PICTURE = re.compile(r"\]\((?:\.\./)+guide/(pictures/)")
_HELPS = "<!-- helps -->"
_ALSO = re.compile(r"<!-- also: (.*?) -->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_MADE = re.compile(r"<!-- made: .*?<!-- end -->", re.DOTALL)
_IDLE = (  # words of questions that are on every page
    " a an and are at between can do does for from get how i in is it make many much my need of "
    "on or the there to use using want we what when where which who why with you your "
)
_PLURAL = re.compile(r"(?<=\w{5})(?<![isu])s$")


@dataclass(frozen=True)
class GuidePage:
    """A page: ``topic`` is its file's name without ``.md``, ``about`` what it is for."""

    topic: str
    title: str
    about: str
    section: str
    folder: Path = FOLDER

    @property
    def path(self) -> Path:
        """Its file."""
        return self.folder / f"{self.topic}.md"

    @property
    def in_menu(self) -> bool:
        """Whether lists of pages have it; others lead to the pages of single detectors."""
        return self.section != _APART

    @property
    def head(self) -> str:
        """What it is about: title, purpose, and the other words that people look for."""
        also = _ALSO.search(self.path.read_text(encoding="utf-8"))
        return " ".join((self.title, self.about, *(also.groups() if also else ())))

    @property
    def written(self) -> str:
        """Its Markdown without what the code makes: the help of commands names everything."""
        return _COMMENT.sub("", _MADE.sub("", self.path.read_text(encoding="utf-8")))

    @property
    def text(self) -> str:
        """Its Markdown as readers get it, without comments."""
        return _COMMENT.sub("", as_read(self.path.read_text(encoding="utf-8")))


def as_read(text: str) -> str:
    """Return the Markdown of a page as if all pages were in one folder.

    It has the help of all commands where that belongs; of a link to a page that is not there, such
    as that of a system that was taken out, the words remain.
    """
    there = {INDEX, *(page.topic for page in guide_pages())}

    def link(found: re.Match[str]) -> str:
        words, topic, section = found.groups("")
        return f"[{words}]({topic}.md{section})" if topic in there else words

    text = _PICTURE.sub(r"](\1", _LINK.sub(link, text))
    if _HELPS in text:  # nobody else waits for all commands to be loaded
        text = text.replace(_HELPS, resolve_name("spanlab.cli.helps:helps")())
    return text


def shipped_guidelines(name: str) -> str:
    """Return guidelines for annotators that are a page of the guide, such as "citations".

    Returns:
        Its sections, without what leads read; "" where there are none of this name.
    """
    topic = f"guidelines-{name.casefold()}"
    texts = (page.path.read_text(encoding="utf-8") for page in guide_pages() if page.topic == topic)
    return next(texts, "").partition("```\n\n")[2]


@dataclass(frozen=True)
class FoundPage:
    """A page with searched words, the line that has most of them, and the words it lacks."""

    page: GuidePage
    line: str
    lacking: tuple[str, ...] = ()


@cache
def guide_pages() -> tuple[GuidePage, ...]:
    """Return all pages: as the guide's first page lists them, then those of systems."""
    section = ""
    pages = []
    for line in (FOLDER / f"{INDEX}.md").read_text(encoding="utf-8").splitlines():
        entry = _ENTRY.match(line)
        if line.startswith("## "):
            section = line[3:]
        elif entry:
            pages.append(
                GuidePage(entry["topic"], entry["title"], entry["about"].rstrip("."), section)
            )
    return (*pages, *_pages_of_systems())


def _pages_of_systems() -> Iterator[GuidePage]:
    for path in sorted(FOLDER.parent.glob("systems/*/*.md")):
        if listed := _LISTED.search(path.read_text(encoding="utf-8")):
            title, about = listed.groups()
            yield GuidePage(path.stem, title, about, _APART, path.parent)


def guide_page(topic: str) -> GuidePage:
    """Return the page of a topic: its file's name, its title or the beginning of one.

    Raises:
        UsageError: there is none; the message names the closest ones.
    """
    names = {name: page for page in guide_pages() for name in (page.topic, page.title.casefold())}
    key = topic.strip().casefold()
    beginning = [name for name in names if name.startswith(key)]
    for name in (key, f"detector-{key}", *beginning):
        if name in names:
            return names[name]
    close = get_close_matches(key, names, n=1) or [hit.page.topic for hit in search_guide(key)[:1]]
    hint = f"; did you mean {names[close[0]].topic!r}?" if close else ""
    raise UsageError(f"the guide has no page {topic!r}{hint} (`spanlab guide` lists them)")


def search_guide(words: str) -> list[FoundPage]:
    """Return the pages that have the most of some words, those first that are about them.

    Args:
        words: beginnings of words, separated by spaces; upper and lower case, singular and plural
            are the same. Words such as "how" and "my" do not count beside others.
    """
    asked = re.findall(r"[^\s?!,;]+", words.casefold())
    searched = [_PLURAL.sub("", word) for word in asked if f" {word} " not in _IDLE] or asked
    found = []
    for page in guide_pages() if searched else ():
        head, text, written = (each.casefold() for each in (page.head, page.text, page.written))
        lacking = [w for w in searched if not (_begins(w, head) or _begins(w, text))]
        whole = sum(bool(re.search(rf"(?<!\w){re.escape(w)}s?(?!\w)", head)) for w in searched)
        begun = sum(bool(_begins(w, head)) for w in searched)
        often = sum(len(_begins(w, written)) for w in searched)
        found.append(((len(lacking), not page.in_menu, -whole, -begun, -often), page, lacking))
    found.sort(key=lambda hit: hit[0])
    fewest = min((len(lacking) for _, _, lacking in found), default=0)
    return [
        FoundPage(page, _best_line(page, searched), tuple(lacking))
        for _, page, lacking in found
        if len(lacking) == fewest < len(searched)
    ]


def _begins(word: str, text: str) -> list[str]:
    """Return the places where a word of the text begins so."""
    return re.findall(rf"(?<!\w){re.escape(word)}", text)


def _best_line(page: GuidePage, words: list[str]) -> str:
    """Return the line of a page that has most of the words, without its Markdown."""
    lines = [line for line in page.text.splitlines() if line.strip(" `|-") and line[0] != "#"]
    best = max(lines, key=lambda line: sum(bool(_begins(word, line.casefold())) for word in words))
    plain = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", best).strip("#|-* ").replace("`", "")
    return plain if len(plain) <= 160 else f"{plain[:160].rpartition(' ')[0]} …"


_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title} · spanlab</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark; font: 16px/1.5 sans-serif; }}
body {{ max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
img {{ max-width: 100%; }} table {{ border-collapse: collapse; }}
td, th {{ border: 1px solid #8886; padding: .3rem .6rem; text-align: left; }}
pre {{ overflow: auto; background: #8882; padding: .7rem; }}
</style><p><a href="README.html">The guide to spanlab</a></p>
"""


def write_html(folder: Path) -> None:
    """Write all pages as HTML that needs nothing else than the pictures of this installation.

    Args:
        folder: made if it is not there; files in it are replaced.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    folder.mkdir(parents=True, exist_ok=True)
    first = GuidePage(INDEX, "Guide", "", "")
    for page in (first, *guide_pages()):
        html = parser.render(page.text)
        html = re.sub(r'href="([\w-]+)\.md', r'href="\1.html', html)
        html = html.replace('src="pictures/', f'src="{FOLDER.as_uri()}/pictures/')
        path = folder / f"{page.topic}.html"
        path.write_text(_HEAD.format(title=page.title) + html, encoding="utf-8")
