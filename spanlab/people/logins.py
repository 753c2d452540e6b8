"""Logins and invitations, and tables of roles, keys, invitations and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from spanlab.base.errors import UsageError, missing_package
from spanlab.base.settings import Settings, account_name
from spanlab.output.tables import Cell, Column, ResultTable, columns_of
from spanlab.schema import NOBODY, OWNER, AccessToken, Actor, GrantedRole, LogEntry, Role
from spanlab.storage import Store
from spanlab.storage.access_register import EMAIL, check_subject
from spanlab.storage.annotators import check_reviewer
from spanlab.storage.datasets import summary_of

INVITATION: Final = "/invitation"  # the path of links
COOKIE: Final = "spanlab_invitation"  # what an accepted link becomes in the browser
_APP: Final = find_spec("streamlit")  # it is not imported: commands need its files' names alone
_FONTS: Final = Path(str(_APP and _APP.origin)).parent.glob("static/static/media/SourceSansVF-Up*")
_FONT: Final = "".join(
    '@font-face { font-family: "Source Sans"; font-weight: 200 900; '
    f"src: url(/static/media/{file.name}); }}"
    for file in _FONTS
)
_HEAD: Final = f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>spanlab</title><style>{_FONT}
:root {{ color-scheme: light dark; font: 1rem/1.6 "Source Sans", system-ui, sans-serif; }}
body {{ margin: 0; background: light-dark(#fff, #171614); color: light-dark(#26211b, #f3efe9); }}
header {{ padding: 1.1rem 1.1rem 0; font-weight: 700; color: light-dark(#b85500, #f3b37a); }}
header mark {{ background: #f3b37a; color: #262730; border-bottom: 3px solid #b85500;
  border-radius: 3px; padding: 0 .2rem; }}
main {{ max-width: 34rem; margin: 10vh auto; padding: 0 1.5rem; }}
h1 {{ font-size: 1.9rem; margin: 0; }}
button {{ font: inherit; padding: .5rem 1.5rem; border: 0; border-radius: .5rem;
  background: light-dark(#0065a8, #2f8fd3); color: light-dark(#fff, #0e1117); }}
</style><header><mark>span</mark>lab</header><main>"""
_ALL: Final = "all datasets"
_LOGIN: Final = Column(key="subject", title="Login")


def visitor(
    store: Store, claims: Mapping[str, Any], cookie: str | None, *, arrives: bool = False
) -> Actor:
    """Return the actor at the app, by the provider's claims, else by an accepted invitation.

    Args:
        store: the annotation database, as its owner has it.
        claims: the claims of the provider's identity token, whose signature was checked; empty
            for none.
        cookie: the cookie of an accepted invitation, if the browser has one.
        arrives: whether this is the beginning of a session.

    Returns:
        The actor with the roles of this moment; ``NOBODY`` for a token that is too old, and for
        everybody else.
    """
    if not claims:
        return (store.access.bearer(cookie, "invitation") if cookie else None) or NOBODY
    ends = claims.get("exp")
    if not isinstance(ends, int | float) or ends <= datetime.now(UTC).timestamp():
        return NOBODY
    if store.access.has_ended(_login_of(claims)):
        return NOBODY
    subject, issued = f"oidc:{claims['sub']}", claims.get("iat")
    is_verified = claims.get("email_verified") is True and claims.get("email")
    email = str(claims["email"]).casefold() if is_verified else None
    if arrives:
        name = claims.get("name") or claims.get("preferred_username") or email or claims["sub"]
        since = datetime.fromtimestamp(issued, UTC) if isinstance(issued, int | float) else None
        actor = store.access.sign_in(subject, str(name), email, since)
    else:
        actor = store.access.actor(subject, email)
    # A provider may give out subjects that look like addresses: only "oidc:…" names a subject.
    if {subject.casefold(), email} & Settings.read().leads:
        return Actor(subject, actor.name, {None: frozenset({Role.LEAD})}, actor.names)
    return actor


def check_claims(claims: Mapping[str, Any]) -> None:
    """Check that what a provider calls somebody can be stored; raises UsageError."""
    check_subject(f"oidc:{claims['sub']}")


def log_out(store: Store, claims: Mapping[str, Any]) -> None:
    """Store that a login has ended: no tab that it opened writes anything from now on."""
    actor = visitor(store, claims, None)
    if actor is not NOBODY:
        store.access.end_login(_login_of(claims), actor, float(claims["exp"]))


def _login_of(claims: Mapping[str, Any]) -> str:
    """Return what tells a login from all others, also of the same person."""
    return f"login {claims['sub']} {claims.get('iat')} {claims.get('nonce')}"


def has_provider() -> bool:
    """Return whether there is a provider at which people log in; raises as ``has_login`` does."""
    return Settings.read().has_provider


def has_login() -> bool:
    """Return whether people have to say who they are here, by a login or an invitation.

    Raises:
        UsageError: some of what that needs is set, and some is not.
    """
    return Settings.read().has_login


def holds_api_key(authorization: str | None) -> bool:
    """Return whether a header Authorization has the API's key; nobody has where there is none."""
    key, sent = Settings.read().api_key, (authorization or "").removeprefix("Bearer ")
    return bool(key) and compare_digest(sent.encode(), key.encode())


def login_secrets() -> dict[str, Any]:
    """Return the secrets that configure Streamlit's login; empty without a login.

    The secret that signs its cookies is made from the provider's, so that several servers agree on
    it, and it changes when that does.

    Raises:
        UsageError: some of the variables are missing, or a package is.
    """
    settings = Settings.read()
    if not settings.has_provider:
        return {}
    if find_spec("authlib") is None:
        raise missing_package("a login", "authlib", "login")
    secret = f"spanlab cookies {settings.oidc_client_id} {settings.oidc_client_secret}"
    return {
        "auth": {
            "redirect_uri": f"{_address(settings)}/oauth2callback",
            "cookie_secret": sha256(secret.encode()).hexdigest(),
            "client_id": settings.oidc_client_id,
            "client_secret": settings.oidc_client_secret,
            "server_metadata_url": f"{str(settings.oidc_issuer).rstrip('/')}"
            "/.well-known/openid-configuration",
            "client_kwargs": {"scope": settings.oidc_scope, "prompt": settings.oidc_prompt},
        }
    }


def invite(  # noqa: PLR0913 - what it opens, for whom, until when
    store: Store,
    dataset: str,
    role: Role,
    expires: datetime,
    *,
    label: str = "",
    code: str = "",
    same: bool = False,
) -> str:
    """Make an invitation and return its link, which one person may use.

    Args:
        store: the annotation database, bound to the person who invites.
        dataset: the dataset to which they invite.
        role: the invited person's role, any but lead.
        expires: when the invitation ends, and the access of the person who has used it.
        label: the person's name; empty for the name of a crowd platform, or a guest.
        code: a text that the person sees once they have finished; empty for none.
        same: whether it is for the person who is called ``label`` already, with their reviews.

    Raises:
        AccessError: the actor of ``store`` does not lead the dataset.
        UsageError: people do not come by invitations here, the end has passed, or the name is one
            that no reviewer can have, or that somebody has, unless it is the ``same`` person.
    """
    settings = Settings.read()
    if not settings.has_login or not settings.url:
        raise UsageError(
            "for invitations start the app with `spanlab serve --invite`, or set "
            "SPANLAB_INVITE=yes and SPANLAB_URL, the address where people reach it"
        )
    if label:
        check_reviewer(summary_of(store, dataset).kinds, label)
        if not same and (taken := store.access.called(label)):
            raise UsageError(
                f"somebody is called “{taken}” already: with --same-person the link is for them, "
                "and what they marked is theirs; for somebody else use another name"
            )
    token = store.access.make_token(
        "invitation", role, dataset, label=label, expires=expires, code=code or None, same=same
    )
    return f"{_address(settings)}{INVITATION}?to={quote(token)}"


def invite_all(  # noqa: PLR0913 - what it opens, for whom, until when
    store: Store,
    dataset: str,
    names: Sequence[str],
    expires: datetime,
    code: str = "",
    role: Role = Role.ANNOTATOR,
    *,
    same: bool = False,
) -> str:
    """Invite several people to a dataset, and return a text for each with a link.

    Args:
        store: the annotation database, bound to the person who invites.
        dataset: the dataset to which they invite.
        names: of the people, empty for a link of nobody in particular; all are checked before the
            first link is made.
        expires: when the invitations end.
        code: see ``invite``.
        role: see ``invite``.
        same: whether those whose names exist are the people who have them.

    Returns:
        The texts with an empty line between; the link alone for an empty name.

    Raises:
        AccessError, UsageError: as ``invite`` does.
    """
    kinds = summary_of(store, dataset).kinds
    for name in filter(None, names):
        check_reviewer(kinds, name)
    host = host_name(store.actor)
    texts = []
    for name in names:
        is_known = same and store.access.called(name) is not None
        link = invite(store, dataset, role, expires, label=name, code=code, same=is_known)
        called = store.access.name_on(link.rpartition("=")[2])
        text = f"{called}: {_invited(host, role, dataset, expires)} {_STORED}\n{link}"
        texts.append(text if called else link)
    return ("\n\n" if any(names) else "\n").join(texts)


_TASKS: Final = {
    Role.ANNOTATOR: "mark what is wrong in the answers of",
    Role.ADJUDICATOR: "mark what is wrong, and decide where others disagree, in the answers of",
    Role.VIEWER: "see what people marked in the answers of",
    Role.LEAD: "lead",
}
_STORED: Final = (
    "The link is for you alone: it works once, and then only in the browser in which you opened it."
    " Your name, your marks with their dates, and the time that you spend on each item are saved."
)


def host_name(actor: Actor) -> str:
    """Return the name of who invites: of who runs the command, the account's, if it is a person's.

    It is empty if it is not known.
    """
    return account_name() if actor.subject == OWNER.subject else actor.name


def _invited(host: str, role: Role, dataset: str | None, expires: datetime) -> str:
    """Say who invites somebody to what, and how long, in the text to send and on its page."""
    to = _ALL if dataset is None else f"“{dataset}”"
    by = f" by {host}" if host else ""
    return f"you are invited{by} to {_TASKS[role]} {to}, until {expires:%-d %B %Y}."


def invite_again(store: Store, token_id: str) -> str:
    """Return another link for the person of an invitation; see ``AccessRegister.invite_again``."""
    token = store.access.invite_again(token_id)
    return f"{_address(Settings.read())}{INVITATION}?to={quote(token)}"


def owners_link(store: Store) -> tuple[str, ...]:
    """Return lines with the link that makes its reader the lead of all datasets, for a year.

    The second one, if any, says that the link of an earlier start is no longer valid.
    """
    token, ends_others = store.access.owners_link(in_days(365))
    address = f"{_address(Settings.read())}{INVITATION}?to={quote(token)}"
    line = f"to lead all datasets, open this link once: {address}"
    ended = "the link that an earlier start printed, and nobody opened, is no longer valid"
    return (line, ended) if ends_others else (line,)


def failed_login_page(error: str, description: str) -> str:
    """Return the page that says why nobody is logged in, as HTML without scripts."""
    return (
        f"{_HEAD}<h1>You are not logged in</h1><p>The provider of logins: "
        f"<b>{escape(error)}</b></p><p>{escape(description)}</p>"
        '<p><a href="/">Log in again</a></p></main>'
    )


def leaving_page() -> str:
    """Return the page that asks whether to end an invitation's session in this browser."""
    return (
        f"{_HEAD}<h1>Log out?</h1><p>This browser forgets your invitation. To come back, ask for "
        f'another link; all that you did is saved.</p><form method="post" action="{INVITATION}">'
        '<input type="hidden" name="leave" value="1"><button>Log out</button></form></main>'
    )


def invitation_page(invitation: AccessToken | None, link: str, worker: str, host: str = "") -> str:
    """Return the page of an invitation's link, as HTML without scripts.

    Args:
        invitation: the invitation of the link; None if it is not valid.
        link: the token in the link.
        worker: the person's id at a crowd platform; empty for none.
        host: the name of who invites; empty if it is not known.
    """
    if invitation is None or invitation.expires is None:
        body = (
            "<h1>This link is no longer valid</h1><p>It was used, has expired or was revoked. If "
            'you used it in this browser, <a href="/">continue here</a>. Otherwise ask for a new '
            "one.</p>"
        )
    else:
        hidden = "".join(
            f'<input type="hidden" name="{name}" value="{escape(value)}">'
            for name, value in (("to", link), ("worker", worker))
        )
        to_what = _invited(host, invitation.role, invitation.dataset, invitation.expires)
        body = (
            f"<h1>Welcome{escape(', ' * bool(invitation.label) + invitation.label)}</h1>"
            f"<p>{escape(to_what[0].upper() + to_what[1:])}</p><p>{_STORED}</p>"
            f'<form method="post" action="{INVITATION}">{hidden}<button>Start</button></form>'
        )
    return f"{_HEAD}{body}</main>"


def in_days(days: int) -> datetime:
    """Return the moment that is so many days from now (UTC)."""
    return datetime.now(UTC) + timedelta(days=days)


def role_table(roles: Sequence[GrantedRole], invited: Sequence[AccessToken] = ()) -> ResultTable:
    """Return a line for each role that somebody has, and for each of these invitations."""
    return ResultTable(
        key="roles",
        title="Roles",
        columns=(
            *columns_of("text", "Person"),
            _LOGIN,
            *columns_of("text", "Role", "Dataset", "Since"),
        ),
        rows=tuple(
            (
                role.name or role.subject.removeprefix(EMAIL),
                role.subject,
                role.role.value,
                role.dataset or _ALL,
                _day(role.at),
            )
            for role in roles
        )
        + tuple(
            (_name(link), f"invitation {link.id}, {state_of(link)}", *_token_row(link)[2:5])
            for link in invited
        ),
        empty="nobody has a role yet",
    )


def token_table(tokens: Sequence[AccessToken], title: str) -> ResultTable:
    """Return a line for each key or invitation."""
    names = ("Id", "For", "Role", "Dataset", "Made", "Ends", "Status", "Worker", "Code")
    return ResultTable(
        key="tokens",
        title=title,
        columns=columns_of("text", *names),
        rows=tuple(map(_token_row, tokens)),
        empty="there are none yet",
    ).without()


def log_table(entries: Sequence[LogEntry]) -> ResultTable:
    """Return a line for everything that somebody did, the newest first."""
    return ResultTable(
        key="log",
        title="Who did what",
        columns=(*columns_of("text", "When", "Who", "What", "Dataset", "About"), _LOGIN),
        rows=tuple(
            (
                f"{entry.at:%Y-%m-%d %H:%M:%S}",
                *(entry.name, entry.action, entry.dataset or "", entry.about, entry.subject),
            )
            for entry in entries
        ),
        empty="nothing yet",
    )


def state_of(token: AccessToken) -> str:
    """Return the state of a key or invitation: valid, open, used, ended or revoked."""
    if token.revoked:
        return "revoked"
    if token.expires is not None and token.expires <= datetime.now(UTC):
        return "ended"
    if token.kind == "invitation":
        return "open" if token.used is None else f"used {_day(token.used)}"
    return "valid"


def is_valid(token: AccessToken) -> bool:
    """Return whether a key or invitation still opens something."""
    return state_of(token) not in {"revoked", "ended"}


def token_line(token: AccessToken) -> str:
    """Return a key or invitation in a line: whose it is, what for, and its state."""
    of = token.dataset or _ALL
    return f"{_name(token)} ({token.id}): {token.role} of {of}, {state_of(token)}"


def _name(token: AccessToken) -> str:
    return token.label or token.worker or "no name"


def _token_row(token: AccessToken) -> tuple[Cell, ...]:
    return (
        *(token.id, token.label, token.role.value, token.dataset or _ALL, _day(token.at)),
        *("never" if token.expires is None else _day(token.expires), state_of(token)),
        *(token.worker, token.code),
    )


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d}"


def _address(settings: Settings) -> str:
    return str(settings.url).rstrip("/")
