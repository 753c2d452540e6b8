"""The app's pages and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pkgutil import resolve_name

import streamlit as st

from spanlab import doors
from spanlab.app.browser import watch_browser
from spanlab.app.help import draw_tour, help_pages
from spanlab.app.visitor import GUARDED, ask_to_log_in, log_out
from spanlab.jobs.worker import start_embedded_worker
from spanlab.schema import MAY, OWNER, Permission
from spanlab.ui import common
from spanlab.ui.messages import errors_shown

# A marked line of text. Streamlit's emoji and material icons would be fetched from other hosts.
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<rect x="3" y="8" width="26" height="15" rx="3" fill="#f3b37a"/>'
    '<path d="M3 25h26" stroke="#b85500" stroke-width="4"/>'
    '<path d="M8 15.5h16" stroke="#262730" stroke-width="4" stroke-linecap="round"/></svg>'
)
_NAME = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 118 32"><title>spanlab</title>'
    "<style>@media (prefers-color-scheme: dark) { tspan { fill: #f3b37a } }</style>"
    '<rect x="2" y="7" width="52" height="17" rx="3" fill="#f3b37a"/>'
    '<path d="M2 26h52" stroke="#b85500" stroke-width="3"/>'
    '<text x="6" y="21" font-family="sans-serif" font-size="18" font-weight="700" '
    'fill="#262730">span<tspan dx="6" fill="#b85500">lab</tspan></text></svg>'
)


_LONGEST = 24  # characters of a name in the navigation
_EMPTY = "spanlab.starts-empty"  # whether there was no dataset when the session began
_FIRST = "first"  # what Streamlit calls the page at `/`, so that its name is free to lead to it


def run() -> None:
    """Draw the app: the navigation and the page that was chosen."""
    st.set_page_config(page_title="spanlab", page_icon=_ICON, layout="wide")
    headers = st.context.headers  # every browser's has Origin; the guard (`app/guard.py`) sees it
    if "Origin" in headers and GUARDED not in headers:
        st.error("Nothing guards this server: start the app with `spanlab serve`.")
        return
    with errors_shown():  # also of what pages do before their own parts show errors
        _draw_app()


def _draw_app() -> None:
    start_embedded_worker()
    st.logo(_NAME, size="medium")
    common.style()
    actor = common.actor()
    mine = [page for page in doors.pages() if actor.may_somewhere(Permission[page.needs])]
    if not mine:
        ask_to_log_in(actor)
        return
    first = _first_of(mine)
    drawn = {page.title: _page(page, default=page is first) for page in mine}
    helping = help_pages()
    common.register_pages([*drawn.values(), *helping])
    watch_browser()
    sizes = Counter(page.group for page in mine)
    groups: dict[str, list[st.Page]] = {"": []}
    for page in mine:  # a group of one page stands in the row itself
        if page.group != doors.OWN:
            group = page.group if sizes[page.group] > 1 else ""
            groups.setdefault(group, []).append(drawn[page.title])
    groups[""].append(_by_name(first, drawn[first.title]))
    groups[""] += [_refuse(page) for page in doors.pages() if page not in mine]
    groups["Help"] = helping
    if actor is not OWNER:
        own = [drawn[page.title] for page in mine if page.group == doors.OWN]
        end = st.Page(log_out, title="Log out", icon=":material/logout:", url_path="log-out")
        groups[actor.name[:_LONGEST]] = [*own, end]
    chosen = st.navigation(groups, position="top")
    draw_tour()
    chosen.run()


def _first_of(pages: Sequence[doors.Page]) -> doors.Page:
    """Return the page at `/`, which stays the same for as long as a session lasts."""
    if _EMPTY not in st.session_state:
        is_linked = "dataset" in st.query_params
        st.session_state[_EMPTY] = not is_linked and not common.store().datasets()
    shown = pages if st.session_state[_EMPTY] else [page for page in pages if page.needs_data]
    return (shown or pages)[0]


def _page(page: doors.Page, *, default: bool) -> st.Page:
    return st.Page(
        resolve_name(page.place),
        title=page.title,
        icon=f":material/{page.icon}:",
        url_path=_FIRST if default else page.title.lower(),
        default=default,
    )


def _by_name(page: doors.Page, first: st.Page) -> st.Page:
    """Return what leads from the first page's name to it: its own address is `/` alone."""

    def lead() -> None:
        st.switch_page(first, query_params=st.query_params.to_dict())

    name = page.title.lower()
    return st.Page(lead, title=page.title, url_path=name, visibility="hidden")


def _refuse(page: doors.Page) -> st.Page:
    """Return what stands at the address of a page that the visitor may not open."""

    def say() -> None:
        needs = Permission[page.needs]
        roles = [f"{role}s" for role, may in MAY.items() if needs in may]
        whom = f"{' and '.join(roles)} of a dataset" if roles else "leads of all datasets"
        st.title(page.title, anchor=False)
        st.info(f"This page is for {whom}. Ask a lead for the role.", icon=":material/lock:")

    return st.Page(say, title=page.title, url_path=page.title.lower(), visibility="hidden")


if __name__ == "__main__":
    run()
