"""`spanlab roles`, `keys`, `invitations` and `log`: who may do what, and who did what."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from spanlab.schema import Role

roles = typer.Typer(
    no_args_is_help=True,
    help="""What people may do, where people log in.

    \b
    spanlab roles grant anna@example.org annotator --dataset mine
    spanlab roles grant ben@example.org lead          for all datasets
    spanlab roles revoke anna@example.org annotator --dataset mine
    spanlab roles list
    """,
)
keys = typer.Typer(
    no_args_is_help=True,
    help="""Keys for programs that ask the JSON API or the MCP server.

    \b
    spanlab keys create --role viewer --label dashboard
    spanlab keys create --role lead --expires 90d
    spanlab keys list
    spanlab keys revoke 1f2e3d4c5b6a
    """,
)
invitations = typer.Typer(
    no_args_is_help=True,
    help="""Links for people without an account at the provider: one person each.

    \b
    spanlab invitations create mine --expires 7d
    spanlab invitations create mine --expires 7d --count 50 --code C1X2Y3   for a crowd platform
    spanlab invitations list
    spanlab invitations revoke 1f2e3d4c5b6a
    """,
)

Person = Annotated[
    str,
    typer.Argument(help="An e-mail address, a name of somebody who has logged in, or a subject."),
]
Dataset = Annotated[str | None, typer.Option(help="For this dataset alone; without it for all.")]
TokenKind = Literal["key", "invitation"]
TokenId = Annotated[str, typer.Argument(metavar="ID", help="As list shows it.")]


@roles.command("grant")
def grant(person: Person, role: Role, dataset: Dataset = None) -> None:
    """Give somebody a role: annotator, adjudicator, viewer or lead."""
    from spanlab.storage import Store

    with Store.open() as store:
        store.access.grant(person, role, dataset)


@roles.command("revoke")
def revoke(person: Person, role: Role, dataset: Dataset = None) -> None:
    """Take a role back; it counts from the person's next click."""
    from spanlab.storage import Store

    with Store.open() as store:
        store.access.revoke(person, role, dataset)


@roles.command("list")
def list_roles() -> None:
    """List who has which role."""
    from spanlab.cli import console
    from spanlab.storage import Store
    from spanlab.workflows.access import role_table

    with Store.open() as store:
        console.write_tables([role_table(store.access.granted())])


@keys.command("create")
def create_key(
    role: Annotated[Role, typer.Option(help="A viewer looks; a lead detects, too.")],
    dataset: Dataset = None,
    expires: Annotated[
        str | None, typer.Option(help="Such as 12h, 90d, 2w or 2026-12-24; without it never.")
    ] = None,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Make a key and write it to standard output, this once: it is stored as a hash."""
    from spanlab.storage import Store
    from spanlab.workflows.access import until

    end = None if expires is None else until(expires)
    with Store.open() as store:
        typer.echo(store.access.make_token("key", role, dataset, label=label, expires=end))


@invitations.command("create")
def create_invitations(
    dataset: Annotated[str, typer.Argument(help="The dataset.")],
    expires: Annotated[str, typer.Option(help="Such as 12h, 7d, 2w or 2026-12-24.")],
    role: Annotated[Role, typer.Option(help="The role; it cannot be lead.")] = Role.ANNOTATOR,
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many links.")] = 1,
    label: Annotated[str, typer.Option(help="What the person is called.")] = "",
    code: Annotated[str, typer.Option(help="Code that is shown to people who have finished.")] = "",
) -> None:
    """Make links, a line each. The first who opens one and says yes is its person.

    A crowd platform adds what it calls the worker: `&worker=…`.
    """
    from spanlab.storage import Store
    from spanlab.workflows.access import invite, until

    with Store.open() as store:
        for _ in range(count):
            typer.echo(invite(store, dataset, role, until(expires), label=label, code=code))


def _list_and_revoke(commands: typer.Typer, kind: TokenKind) -> None:
    """Add the commands that keys and invitations have alike."""

    @commands.command("list", help=f"List the {kind}s, without what opens the door.")
    def list_tokens() -> None:
        from spanlab.cli import console
        from spanlab.storage import Store
        from spanlab.workflows.access import token_table

        with Store.open() as store:
            tokens = store.access.tokens(kind)
            console.write_tables([token_table(tokens, f"{kind.capitalize()}s")])

    @commands.command("revoke", help=f"Let {kind} ID open nothing any more, whoever has it.")
    def revoke_token(token_id: TokenId) -> None:
        from spanlab.storage import Store

        with Store.open() as store:
            store.access.revoke_token(kind, token_id)


_list_and_revoke(keys, "key")
_list_and_revoke(invitations, "invitation")


def log(
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum lines.")] = 100,
) -> None:
    """Say who did what, the newest first: logins, roles, exports, deletions, keys, invitations.

    \b
    spanlab log --limit 20
    """
    from spanlab.cli import console
    from spanlab.storage import Store
    from spanlab.workflows.access import log_table

    with Store.open() as store:
        console.write_tables([log_table(store.access.log(limit))])
