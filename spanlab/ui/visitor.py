"""Who is at the app in this session: whom the login or an invitation names, else nobody.

Without a login it is the owner, as on one's own machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote, unquote

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.web.server.starlette.starlette_websocket import (
    _get_signed_cookie_with_chunks as signed_cookie,
)

from spanlab.schema import NOBODY, OWNER, Actor, Permission
from spanlab.storage.store import Store
from spanlab.workflows.access import (
    COOKIE,
    INVITATION,
    has_login,
    has_provider,
    invitation_page,
    leaving_page,
    visitor,
)

GUARDED = "X-Spanlab-Guarded"  # a header of requests that the guard has let through
_ARRIVED = "spanlab.arrived"  # the subject whose session has begun
_LONGEST_ADDRESS = 2000  # characters of a page's address: browsers keep no longer cookies
_LONGEST = 200  # characters of a link's token, and of a worker's name
_BROWSER = "spanlab_browser"  # a cookie: a secret of the browser that opens an invitation
_SECRET = 40  # characters of it at least
_ASKED = "spanlab_asked"  # a cookie: the address that somebody asked for before they logged in
# A path of this server: no other host follows the slash, also once a browser has left out tabs and
# line ends, which it does before it reads an address.
_OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\]*")
_NO_PAGES = ("/auth/", "/oauth2callback", INVITATION)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",  # no link elsewhere; with none a form has no Origin
    "Cache-Control": "no-store",
}


def actor(store: Store) -> Actor:
    """Return who acts in this session, with the roles that they have at this moment.

    Args:
        store: the annotation database, as its owner has it.
    """
    if not has_login():
        return OWNER
    claims = st.user.to_dict() if has_provider() and st.user.get("is_logged_in") is True else {}
    subject = str(claims.get("sub", ""))
    arrives = bool(subject) and st.session_state.get(_ARRIVED) != subject
    session_actor = visitor(store, claims, st.context.cookies.get(COOKIE), arrives=arrives)
    if arrives and session_actor is not NOBODY:
        st.session_state[_ARRIVED] = subject
    return session_actor


def ask_to_log_in(actor: Actor) -> None:
    """Draw the page for a visitor without rights: the login, or whom to ask for a role."""
    _, middle, _ = st.columns((1, 2, 1))
    with middle:
        st.title("spanlab", anchor=False)
        if actor is NOBODY and not has_provider():
            st.markdown("People come here by invitation: open the link that you were sent.")
            st.caption(
                "If it has ended, or was opened in another browser, ask whoever sent it for "
                "another one. The command that runs spanlab here says a link for its lead."
            )
        elif actor is NOBODY:
            st.markdown("Please log in to go on.")
            if st.button("Log in", type="primary", icon=":material/login:"):
                st.login()
            st.caption("With an invitation, open its link; if that ends, ask for another one.")
        else:
            st.info(
                f"You are logged in as {actor.name}, and have no role here yet. Ask a lead for "
                "one, by the e-mail address that you logged in with, or by this:",
                icon=":material/person_off:",
            )
            st.code(actor.subject, language=None)
            st.button("Log out", icon=":material/logout:", on_click=st.logout)


def actor_of_request(store: Store, request: HTTPConnection) -> Actor:
    """Return who sends a request, by the cookies of the login or of an invitation."""
    claims: dict[str, Any] = {}
    if has_provider():
        # What `st.user` is made of, which there is in a session alone; Streamlit has no public name
        # for it. `tests/browser/test_login.py` fails if that changes.
        said = signed_cookie(dict(request.cookies), "_streamlit_user")
        claims = json.loads(said) if said else {}
        claims = claims if claims.get("is_logged_in") is True else {}
    return visitor(store, claims, request.cookies.get(COOKIE))


_MEDIA, _UPLOADS = "/media/", "/_stcore/upload_file/"  # of Streamlit's own server


class FileGuard:
    """Lets those fetch files that the app has made who may export, and those upload who may read.

    Streamlit gives either to whoever knows an address, also once a role has been taken back.
    Pictures of the guide are everybody's: what a file is says the reply, as an address may have any
    ending.

    Args:
        app: what answers.
        open_store: returns the annotation database, as its owner has it.
    """

    def __init__(self, app: ASGIApp, open_store: Callable[[], Store]) -> None:
        self._app, self._open_store = app, open_store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        path = str(scope.get("path", "")) if scope["type"] == "http" else ""
        if not path.startswith((_MEDIA, _UPLOADS)):
            await self._app(scope, receive, send)
            return
        actor = await run_in_threadpool(
            lambda: actor_of_request(self._open_store(), HTTPConnection(scope))
        )
        if path.startswith(_MEDIA):
            await self._answer_media(actor, scope, receive, send)
        elif actor.may_somewhere(Permission.READ):
            await self._app(scope, receive, send)
        else:
            await _refusal(Permission.READ)(scope, receive, send)

    async def _answer_media(self, actor: Actor, scope: Scope, receive: Receive, send: Send) -> None:
        is_refused = False

        async def send_checked(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if not headers.get("content-type", "").startswith("image/"):
                    headers["Cache-Control"] = "no-store"
                    is_refused = not actor.may_somewhere(Permission.EXPORT)
            if not is_refused:
                await send(message)

        await self._app(scope, receive, send_checked)
        if is_refused:
            await _refusal(Permission.EXPORT)(scope, receive, send)


def _refusal(needed: Permission) -> Response:
    words = f"this needs somebody who may {needed.value}: log in, or ask a lead\n"
    return PlainTextResponse(words, 403)


async def return_after_login(request: Request, answer: RequestResponseEndpoint) -> Response:
    """Lead whoever has logged in to the page that they asked for; Streamlit leads to the first.

    Until then a cookie holds the page's address.
    """
    response = await answer(request)
    path, back = request.url.path, unquote(request.cookies.get(_ASKED, ""))
    address = path + ("?" + request.url.query if request.url.query else "")
    is_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if path == "/auth/logout":
        response.delete_cookie(_ASKED)
    elif path == "/oauth2callback" and "location" in response.headers and _is_own(back):
        response.headers["location"] = back
    elif is_page and not path.startswith(_NO_PAGES) and len(address) < _LONGEST_ADDRESS:
        noted = quote(address, safe="")
        response.set_cookie(_ASKED, noted, max_age=3600, httponly=True, samesite="lax")
    return response


def _is_own(address: str) -> bool:
    return _OWN_PATH.fullmatch(address) is not None


def log_out() -> None:
    """Draw the page that ends the session."""
    st.title("Log out", anchor=False)
    if has_provider() and st.user.get("is_logged_in") is True:
        st.button("Log out", type="primary", icon=":material/logout:", on_click=st.logout)
    else:
        st.markdown("You came by an invitation. On a computer that others use, leave it when done.")
        st.link_button("Leave", f"{INVITATION}?leave=1", icon=":material/logout:")


def routes(open_store: Callable[[], Store]) -> list[Route]:
    """Return the routes that answer the links of invitations.

    A link is opened by a look and used by a button: programs that look at links in messages
    would use it up.

    Args:
        open_store: returns the annotation database, as its owner has it.
    """

    async def open_link(request: Request) -> Response:
        if request.query_params.get("leave"):
            return HTMLResponse(leaving_page(), 200, _HEADERS)
        link = request.query_params.get("to", "")[:_LONGEST]
        worker = request.query_params.get("worker", "")[:_LONGEST]
        invitation = await run_in_threadpool(lambda: open_store().access.invitation(link))
        if invitation is None and await knows(request):
            return RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        page = invitation_page(invitation, link, worker)
        response = HTMLResponse(page, 404 if invitation is None else 200, _HEADERS)
        if invitation is not None:  # what this browser is to be known by once it goes on
            secret = token_urlsafe(32)
            response.set_cookie(_BROWSER, secret, max_age=3600, httponly=True, samesite="lax")
        return response

    async def knows(request: Request) -> bool:
        cookie = request.cookies.get(COOKIE)
        if not cookie:
            return False
        return await run_in_threadpool(
            lambda: open_store().access.bearer(cookie, "invitation") is not None
        )

    async def accept_invitation(request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=4)
        if form.get("leave"):
            response: Response = RedirectResponse("/", 303)
            response.delete_cookie(COOKIE)
            return response
        link, worker = (str(form.get(name, ""))[:_LONGEST] for name in ("to", "worker"))
        browser = request.cookies.get(_BROWSER, "")[:_LONGEST]
        browser = browser if len(browser) >= _SECRET else ""
        token = await run_in_threadpool(
            lambda: open_store().access.accept(link, worker or None, browser or None)
        )
        if token is None:
            return HTMLResponse(invitation_page(None, link, worker), 404, _HEADERS)
        guest = await run_in_threadpool(lambda: open_store().access.bearer(token, "invitation"))
        # Who leads does not begin with Review, which would reserve items for them.
        leads = guest is not None and guest.may_somewhere(Permission.MANAGE)
        response = RedirectResponse(
            "/datasets" if leads else "/", 303, {"Cache-Control": "no-store"}
        )
        secure = request.headers.get("origin", "").startswith("https:")
        response.set_cookie(
            COOKIE, token, max_age=_MONTH, httponly=True, samesite="lax", secure=secure
        )
        return response

    return [Route(INVITATION, open_link), Route(INVITATION, accept_invitation, methods=["POST"])]


_MONTH = 31 * 24 * 3600  # seconds; the invitation itself ends earlier or later
