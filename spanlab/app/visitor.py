"""Who is at the app in this session: whom the login or an invitation names, else nobody.

Without a login it is the owner, as on one's own machine.
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from secrets import token_urlsafe

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spanlab.app.login import HEADERS, claims_of
from spanlab.app.uploads import Uploads
from spanlab.data.report_links import REPORTS, shared_report
from spanlab.people.logins import (
    COOKIE,
    INVITATION,
    has_login,
    has_provider,
    host_name,
    invitation_page,
    leaving_page,
    visitor,
)
from spanlab.schema import NOBODY, OWNER, AccessToken, Actor, Permission
from spanlab.storage.access_register import SOMEBODY
from spanlab.storage.store import Store

GUARDED = "X-Spanlab-Guarded"  # a header of requests that the guard has let through
_ARRIVED = "spanlab.arrived"  # the subject whose session has begun
_MET = "spanlab.met"  # whether somebody with a role has been at this session
_LONGEST = 200  # characters of a link's token, and of a worker's name
_BROWSER = "spanlab_browser"  # a cookie: a secret of the browser that opens a link, signed for it


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
    if session_actor.roles:
        st.session_state[_MET] = True
    if arrives and session_actor is not NOBODY:
        st.session_state[_ARRIVED] = subject
    return session_actor


def ask_to_log_in(actor: Actor) -> None:
    """Draw the page for a visitor without rights: the login, or whom to ask for a role."""
    _, middle, _ = st.columns((1, 2, 1))
    with middle:
        st.title("spanlab", anchor=False)
        if st.session_state.get(_MET):
            st.warning(
                "Your access has ended. Ask a lead to have it back: what is not saved yet stays "
                "in this browser until then.",
                icon=":material/lock:",
            )
        if actor is NOBODY and not has_provider():
            st.markdown("People come here by invitation: open the link that you were sent.")
            st.caption(
                "If it has expired, or was opened in another browser, ask for a new one. The "
                "command that runs spanlab here prints a link for its lead."
            )
        elif actor is NOBODY:
            st.markdown("Please log in.")
            if st.button("Log in", type="primary", icon=":material/login:"):
                st.login()
            st.caption(
                "If you were invited, open your invitation link. If it has expired, ask for a new "
                "one."
            )
        else:
            st.info(
                f"You are logged in as {actor.name}. You have no role yet. Ask a lead for one; "
                "they need this ID, or an e-mail address that your login provider has verified:",
                icon=":material/person_off:",
            )
            st.code(actor.subject, language=None)
            st.button("Log out", icon=":material/logout:", on_click=st.logout)


def actor_of_request(store: Store, request: HTTPConnection) -> Actor:
    """Return who sends a request, by the cookies of the login or of an invitation."""
    if not has_login():
        return OWNER
    claims = claims_of(request) if has_provider() else {}
    return visitor(store, claims, request.cookies.get(COOKIE))


_MEDIA, _UPLOADS = "/media/", "/_stcore/upload_file/"  # of Streamlit's own server


class FileGuard:
    """Lets those fetch files that the app has made who may export, and bounds what is uploaded.

    Leads upload files to import; who may read uploads certificates to check, and annotators
    nothing. The bounds (`app/uploads.py`) hold without a login, too.

    Streamlit gives either to anyone who knows an address, also once a role has been taken back.
    Pictures of the guide are everybody's: what a file is says the reply, as an address may have any
    ending.

    Args:
        app: what answers.
        open_store: returns the annotation database, as its owner has it.
        most: see ``Uploads``.
    """

    def __init__(
        self, app: ASGIApp, open_store: Callable[[], Store], most: int | None = None
    ) -> None:
        self._app, self._open_store, self._uploads = app, open_store, Uploads(most)

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
        elif not actor.may_somewhere(Permission.READ):
            await _refusal(Permission.READ)(scope, receive, send)
        elif scope["method"] != "PUT":
            await self._app(scope, receive, send)
        else:
            await self._take_upload(actor, scope, receive, send)

    async def _take_upload(self, actor: Actor, scope: Scope, receive: Receive, send: Send) -> None:
        size = Headers(scope=scope).get("content-length", "")
        if not size.isdecimal():  # browsers always say it
            await PlainTextResponse("say how long it is\n", 411)(scope, receive, send)
            return
        session = scope["path"].removeprefix(_UPLOADS).partition("/")[0]
        with self._uploads.admitted(actor, session, int(size)) as fits:
            refusal = PlainTextResponse(
                "this and your other uploads are larger than they may be\n", 413
            )
            await (self._app if fits else refusal)(scope, receive, send)

    async def _answer_media(self, actor: Actor, scope: Scope, receive: Receive, send: Send) -> None:
        # Streamlit's page asks for each file once to know whether it is there, and reads nothing of
        # it: what is not to be stored would be under way as long as the page is open.
        is_asked_after = Headers(scope=scope).get("sec-fetch-mode") == "cors"
        scope, is_refused = {**scope, "method": "HEAD"} if is_asked_after else scope, False

        async def send_checked(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if is_asked_after:
                    headers["Content-Length"] = "0"
                if not headers.get("content-type", "").startswith("image/"):
                    headers["Cache-Control"] = "no-store"
                    is_refused = not actor.may_somewhere(Permission.EXPORT)
            elif is_asked_after:  # a stored file is sent whole whatever the method is
                message = {**message, "body": b""}
            if not is_refused:
                await send(message)

        await self._app(scope, receive, send_checked)
        if is_refused:
            await _refusal(Permission.EXPORT)(scope, receive, send)


def _refusal(needed: Permission) -> Response:
    words = f"this needs somebody who may {needed.value}: log in, or ask a lead\n"
    return PlainTextResponse(words, 403)


def log_out() -> None:
    """Draw the page that ends the session."""
    st.title("Log out", anchor=False)
    if has_provider() and st.user.get("is_logged_in") is True:
        st.button("Log out", type="primary", icon=":material/logout:", on_click=st.logout)
    else:
        st.markdown(
            "You joined by invitation. On a shared computer, log out when you have finished. To "
            "come back here afterwards, ask for a new link."
        )
        st.link_button("Log out", f"{INVITATION}?leave=1", icon=":material/logout:")


def _signed(store: Store, secret: str, link: str) -> str:
    return f"{secret}.{store.access.signature(f'{secret} {link}')}"


def _inviter(store: Store, invitation: AccessToken | None) -> str:
    """Return the name of who has made an invitation; empty if nobody can be named."""
    made_by = invitation and store.access.actor(invitation.made_by)
    name = host_name(made_by) if made_by else ""
    return "" if name == SOMEBODY else name


def routes(open_store: Callable[[], Store]) -> list[Route]:
    """Return the routes that answer the links of invitations.

    A link is opened by a look and used by a button: programs that look at links in messages
    would use it up.

    Args:
        open_store: returns the annotation database, as its owner has it.
    """

    async def knows(cookie: str) -> bool:
        return bool(cookie) and await run_in_threadpool(
            lambda: open_store().access.bearer(cookie, "invitation") is not None
        )

    async def open_link(request: Request) -> Response:
        if request.query_params.get("leave"):
            return HTMLResponse(leaving_page(), 200, HEADERS)
        link = request.query_params.get("to", "")[:_LONGEST]
        worker = request.query_params.get("worker", "")[:_LONGEST]
        invitation = await run_in_threadpool(lambda: open_store().access.invitation(link))
        if invitation is None and await knows(request.cookies.get(COOKIE, "")):
            return RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        host = await run_in_threadpool(lambda: _inviter(open_store(), invitation))
        page = invitation_page(invitation, link, worker, host)
        response = HTMLResponse(page, 404 if invitation is None else 200, HEADERS)
        if invitation is not None:  # what this browser is to be known by once it goes on
            secret = token_urlsafe(32)
            signed = await run_in_threadpool(lambda: _signed(open_store(), secret, link))
            response.set_cookie(_BROWSER, signed, max_age=3600, httponly=True, samesite="lax")
        return response

    async def accept_invitation(request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=4)
        if form.get("leave"):
            cookie = request.cookies.get(COOKIE, "")
            await run_in_threadpool(lambda: open_store().access.leave(cookie))
            response: Response = RedirectResponse("/", 303)
            response.delete_cookie(COOKIE)
            return response
        link, worker = (str(form.get(name, ""))[:_LONGEST] for name in ("to", "worker"))
        browser = request.cookies.get(_BROWSER, "")[:_LONGEST]
        secret = browser.partition(".")[0]

        def accept() -> str | None:  # of a cookie that somebody else has set nothing is made
            is_ours = compare_digest(_signed(open_store(), secret, link).encode(), browser.encode())
            return open_store().access.accept(link, worker or None, browser if is_ours else None)

        token = await run_in_threadpool(accept)
        if token is None:
            return HTMLResponse(invitation_page(None, link, worker), 404, HEADERS)
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


def report_routes(open_store: Callable[[], Store]) -> list[Route]:
    """Return the route of links to reports, which need no login.

    Args:
        open_store: returns the annotation database, as its owner has it.
    """

    async def open_report(request: Request) -> Response:
        link = request.query_params.get("to", "")[:_LONGEST]
        page = await run_in_threadpool(lambda: shared_report(open_store(), link))
        if page is None:
            gone = "This link is no longer valid. Ask the person who sent it for a new one.\n"
            return PlainTextResponse(gone, 404, _SHARED)
        return HTMLResponse(page, 200, _SHARED)

    return [Route(REPORTS, open_report)]


_SHARED = {  # headers: nothing runs or is loaded, no other site learns the address, no one keeps it
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
_MONTH = 31 * 24 * 3600  # seconds; the invitation itself ends earlier or later
