"""The head of a page in HTML that can be mailed."""

from __future__ import annotations

from html import escape

from spanlab.output.marked_text import MARK_STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


_STYLE = """
:root { color-scheme: light dark; --mark: 208, 104, 8; --line: rgba(128, 132, 149, .4); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3, td, p, li, summary, dd { overflow-wrap: anywhere; }
th { overflow-wrap: break-word; }
h1 { font-size: 1.1rem; margin: 0; font-weight: 600; } h1 small { font-weight: 400; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .2rem; } h3 { font-size: 1rem; margin: 1rem 0 .2rem; }
.headline { font-size: 1.7rem; line-height: 1.25; font-weight: 650; margin: .5rem 0 .3rem; }
header p { margin: 0 0 .8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 0; }
dt { font-weight: 600; } dd { margin: 0; }
figure { margin: 1rem 0 0; } figcaption { font-weight: 600; } figure svg { margin: 0 !important; }
article { border-top: 2px solid var(--line); padding: .5rem 0 1.5rem; content-visibility: auto;
  contain-intrinsic-size: auto 30rem; }
.question { font-weight: 600; white-space: pre-wrap; margin: .6rem 0 .1rem; }
.answer, .passage { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; }
.about { font-size: .875em; margin: .2rem 0; }
table { border-collapse: collapse; margin: 1.5rem 0; display: block; overflow-x: auto; }
caption { display: block; text-align: start; font-weight: 600; }
td { font-variant-numeric: tabular-nums; }
td, th { text-align: start; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: end; }
summary { cursor: pointer; }
blockquote { margin: .2rem 0 .4rem; padding-inline-start: .7rem;
  border-inline-start: 3px solid var(--line); }
.on-paper { display: none; }
@page { size: A4; margin: 12mm; }
@media print {
  .figured .details, .figured details, .figured ~ article, .figured ~ .at-end { display: none; }
  .figured .on-paper { display: block; }
  body { max-width: none; padding: 0; } .figured { font-size: 8.5pt; line-height: 1.35; }
  mark { print-color-adjust: exact; }
  .headline { font-size: 15pt; } figure svg { width: 62%; }
  .figured section > .passage { max-height: 16em; overflow: hidden; }
  .examples li, blockquote, tr { break-inside: avoid; }
  .examples ol { margin: 0; } h2 { margin: 3mm 0 1mm; } table { margin: 3mm 0; }
  .figured tr:nth-child(n + 10) { display: none; } td, th { padding-block: .2mm; }
}
"""


def page_head(title: str, kind: str = "") -> str:
    """Return the beginning of an HTML page, up to its heading; its policy forbids scripts.

    Args:
        title: of the page.
        kind: the word above the title in its heading, such as "Report".
    """
    above = f"<small>{escape(kind)}</small> " if kind else ""
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{MARK_STYLE}</style></head>\n"
        f"<body><main><h1 dir='auto'>{above}{escape(title)}</h1>\n"
    )
