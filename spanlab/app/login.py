"""The way to a provider of logins and back, by Streamlit's cookies, with a word where it fails.

Streamlit's own way sends people whom the provider refuses to the login page without a word, asks
every provider for ``prompt=select_account``, which the standard lets them refuse, and reads the ID
token alone, in which e-mail addresses need not be (OpenID Connect Core 5.4).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from hmac import compare_digest
from typing import Any
from urllib.parse import quote, unquote

from starlette.concurrency import run_in_threadpool
from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

# Streamlit has no public names for its client of the provider, and for the cookies that `st.user`
# is made of. `tests/full/browser/test_login.py` fails if these change.
from streamlit.web.server.starlette.starlette_auth_routes import (
    _create_oauth_client as create_client,
)
from streamlit.web.server.starlette.starlette_auth_routes import (
    _set_auth_cookie as set_cookies,
)
from streamlit.web.server.starlette.starlette_websocket import (
    _get_signed_cookie_with_chunks as signed_cookie,
)

from spanlab.base.inbound import one_line
from spanlab.people.logins import (
    INVITATION,
    check_claims,
    failed_login_page,
    log_out,
    login_secrets,
)
from spanlab.storage.store import Store

log = logging.getLogger("spanlab.login")

_PROVIDER = "default"  # what Streamlit calls the only one
_CALLBACK = "/oauth2callback"
_ADDRESS_CLAIMS = ("email", "email_verified", "name", "preferred_username")
_REASON = 300  # characters of what a provider says
_LONGEST_ADDRESS = 2000  # characters of a page's address: browsers keep no longer cookies
_ASKED = "spanlab_asked"  # a cookie: the address that somebody asked for before they logged in
# A path of this server: no other host follows the slash, also once a browser has left out tabs and
# line ends, which it does before it reads an address.
OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\]*")
_NO_PAGES = ("/auth/", _CALLBACK, INVITATION)
HEADERS = {  # of pages that are not Streamlit's
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; font-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",  # no link elsewhere; with none a form has no Origin
    "Cache-Control": "no-store",
}


def claims_of(request: HTTPConnection) -> dict[str, Any]:
    """Return what the provider has said of who sends a request; nothing for nobody."""
    said = signed_cookie(dict(request.cookies), "_streamlit_user")
    claims: dict[str, Any] = json.loads(said) if said else {}
    return claims if claims.get("is_logged_in") is True else {}


class ReturnAfterLogin:
    """Leads a person who has logged in to the page that they asked for, and ends logins everywhere.

    Until then a signed cookie holds the page's address: a sibling of this host can set one, too.

    Args:
        open_store: returns the annotation database, as its owner has it.
    """

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store

    async def __call__(self, request: Request, answer: RequestResponseEndpoint) -> Response:
        """Answer a request."""
        path = request.url.path
        if path == "/auth/logout" and (claims := claims_of(request)):
            await run_in_threadpool(lambda: log_out(self._open_store(), claims))
        response = await answer(request)
        address = path + ("?" + request.url.query if request.url.query else "")
        is_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if path == "/auth/logout":
            response.delete_cookie(_ASKED)
        elif path == _CALLBACK and "location" in response.headers:
            back = _read_signed(request.cookies.get(_ASKED, ""))
            if OWN_PATH.fullmatch(back):
                response.headers["location"] = back
        elif is_page and not path.startswith(_NO_PAGES) and len(address) < _LONGEST_ADDRESS:
            noted = quote(f"{_signature(address)}{address}", safe="")
            response.set_cookie(_ASKED, noted, max_age=3600, httponly=True, samesite="lax")
        return response


def _signature(address: str) -> str:
    key = bytes.fromhex(login_secrets()["auth"]["cookie_secret"])
    return blake2b(address.encode(), key=key, person=b"spanlab asked").hexdigest()


def _read_signed(cookie: str) -> str:
    """Return the address of a cookie that this app has signed; nothing of another one."""
    text = unquote(cookie)
    start = text.find("/")
    is_ours = compare_digest(text[:start].encode(), _signature(text[start:]).encode())
    return text[start:] if start > 0 and is_ours else ""


def login_routes() -> list[Route]:
    """Return the routes that go before Streamlit's own."""

    async def begin(request: Request) -> Response:
        client, redirect_uri = create_client(_PROVIDER)
        if not client.client_kwargs["prompt"]:
            del client.client_kwargs["prompt"]
        try:
            redirect: Response = await client.authorize_redirect(request, redirect_uri)
        except Exception:
            log.exception("the provider of logins does not answer")
            return _failed("It does not answer", "try again in a moment, or ask who runs it")
        return redirect

    async def finish(request: Request) -> Response:
        said = request.query_params
        if not {"code", "error"} & said.keys():  # a provider leads here after a logout, too
            return RedirectResponse("/", 302)
        if f"_state_{_PROVIDER}_{said.get('state')}" not in request.session:
            # Begun elsewhere, too long ago, or gone back to: words of its address are nobody's.
            back = claims_of(request)
            return RedirectResponse("/", 302) if back else _failed("It has ended", "begin again")
        if "error" in said:
            log.warning(
                "the provider of logins refuses a login: %s", one_line(said["error"], _REASON)
            )
            return _failed(said["error"], said.get("error_description", ""))
        client, redirect_uri = create_client(_PROVIDER)
        try:
            token = await client.authorize_access_token(request)
            claims = await _complete(client, token)
            check_claims(claims)
        except Exception as error:
            log.info("a login failed", exc_info=True)
            return _failed(
                getattr(error, "error", "") or "It cannot be used",
                getattr(error, "description", "") or "the log of the server says why",
            )
        origin = redirect_uri.removesuffix(_CALLBACK)
        about = {"origin": origin, "is_logged_in": True, "provider": _PROVIDER}
        response = RedirectResponse("/", 302)
        kept = {name: token[name] for name in ("id_token", "access_token") if name in token}
        await set_cookies(response, claims | about, kept)
        return response

    return [Route("/auth/login", begin), Route(_CALLBACK, finish)]


async def _complete(client: Any, token: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of an ID token, with what UserInfo alone says of the same person."""
    claims = dict(token["userinfo"])
    metadata = await client.load_server_metadata()
    if {"email", "email_verified"} <= claims.keys() or "userinfo_endpoint" not in metadata:
        return claims
    try:
        said = await client.userinfo(token=token)
    except Exception:  # who has a role by their subject needs none of it
        log.warning("UserInfo says nothing of somebody who has logged in", exc_info=True)
        return claims
    if said.get("sub") != claims["sub"]:  # of somebody else (OpenID Connect Core 5.3.2)
        return claims
    return {name: said[name] for name in _ADDRESS_CLAIMS if name in said} | claims


def _failed(error: str, description: str) -> Response:
    error, description = (one_line(text, _REASON) for text in (error, description))
    log.warning("a login failed: %s: %s", error, description)
    return HTMLResponse(failed_login_page(error, description), 400, HEADERS)
