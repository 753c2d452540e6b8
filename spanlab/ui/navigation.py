"""The app's pages and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from spanlab import jobs as work
from spanlab.schema import OWNER, Actor, Permission
from spanlab.ui import common, model_setup
from spanlab.ui.help import draw_tour, help_pages
from spanlab.ui.views import (
    access,
    adjudicate,
    campaign,
    compare,
    datasets,
    detect,
    export,
    jobs,
    measure,
    memory,
    optimise,
    review,
)
from spanlab.ui.visitor import GUARDED, ask_to_log_in, log_out

# A marked line of text. Streamlit's emoji and material icons would be fetched from other hosts.
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<rect x="3" y="8" width="26" height="15" rx="3" fill="#f3b37a"/>'
    '<path d="M3 25h26" stroke="#b85500" stroke-width="4"/>'
    '<path d="M8 15.5h16" stroke="#262730" stroke-width="4" stroke-linecap="round"/></svg>'
)
_NAME = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 118 32"><title>spanlab</title>'
    '<rect x="2" y="7" width="52" height="17" rx="3" fill="#f3b37a"/>'
    '<path d="M2 26h52" stroke="#b85500" stroke-width="3"/>'
    '<text x="6" y="21" font-family="sans-serif" font-size="18" font-weight="700" '
    'fill="#262730">span<tspan dx="6" fill="#b85500">lab</tspan></text></svg>'
)


class _Place(NamedTuple):
    """A page, its group, and what somebody needs to be allowed to do with any dataset to get it."""

    draw: Callable[[], None]
    title: str
    icon: str
    needs: Permission
    group: str = ""  # in the row itself


# In the order of the work. A group is a menu in the row, as eleven pages beside each other are not
# taken in; what is used all day stands in the row itself.
_PAGES = (
    _Place(review.page, "Review", "edit_note", Permission.REVIEW),
    _Place(datasets.page, "Datasets", "database", Permission.MANAGE),
    _Place(detect.page, "Detect", "manage_search", Permission.ADMINISTER),
    _Place(compare.page, "Compare", "compare", Permission.READ, "Results"),
    _Place(measure.page, "Measure", "straighten", Permission.READ, "Results"),
    _Place(export.page, "Export", "download", Permission.EXPORT),
    _Place(campaign.page, "Campaign", "groups", Permission.MANAGE, "Team"),
    _Place(adjudicate.page, "Adjudicate", "gavel", Permission.ADJUDICATE, "Team"),
    _Place(optimise.page, "Optimise", "tune", Permission.ADMINISTER, "Tools"),
    _Place(jobs.page, "Jobs", "work_history", Permission.ADMINISTER, "Tools"),
    _Place(memory.page, "Memory", "psychology", Permission.ADMINISTER, "Tools"),
)
_LONGEST = 24  # characters of a name in the navigation


def run() -> None:
    """Draw the app: the navigation and the page that was chosen."""
    st.set_page_config(page_title="spanlab", page_icon=_ICON, layout="wide")
    headers = st.context.headers  # every browser's has Origin; the guard (`ui/server.py`) sees it
    if "Origin" in headers and GUARDED not in headers:
        st.error("Nothing guards this server: start the app with `spanlab serve`.")
        return
    work.start_embedded_worker()
    st.logo(_NAME, size="medium")
    common.style()
    actor = common.actor()
    pages = _pages(actor)
    if not pages:
        ask_to_log_in(actor)
        return
    helping = help_pages()
    common.register_pages([*pages, *helping])
    model_setup.watch_connection()
    groups = {**_grouped(actor, pages), "Help": helping}
    if actor is not OWNER:
        groups[actor.name[:_LONGEST]] = _own_pages(actor)
    page = st.navigation(groups, position="top")
    draw_tour()
    page.run()


def _pages(actor: Actor) -> list[st.Page]:
    """Return the pages of who may use them for anything, the first as the one to begin with."""
    mine = [place for place in _PAGES if actor.may_somewhere(place.needs)]
    return [
        st.Page(
            place.draw,
            title=place.title,
            icon=f":material/{place.icon}:",
            url_path=place.title.lower(),
            default=place is mine[0],
        )
        for place in mine
    ]


def _grouped(actor: Actor, pages: Sequence[st.Page]) -> dict[str, list[st.Page]]:
    """Return the pages by their groups; a group of one page stands in the row itself."""
    mine = [place for place in _PAGES if actor.may_somewhere(place.needs)]
    sizes = Counter(place.group for place in mine)
    groups: dict[str, list[st.Page]] = {"": []}
    for place, page in zip(mine, pages, strict=True):
        groups.setdefault(place.group if sizes[place.group] > 1 else "", []).append(page)
    return groups


def _own_pages(actor: Actor) -> list[st.Page]:
    """Return the pages below the name of who has logged in."""
    end = st.Page(log_out, title="Log out", icon=":material/logout:", url_path="log-out")
    if not actor.may_somewhere(Permission.MANAGE):
        return [end]
    return [st.Page(access.page, title="Access", icon=":material/key:", url_path="access"), end]


if __name__ == "__main__":
    run()
