"""`spanlab reports`: links to reports that can be read without a login."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.data.report_links import share_report
from spanlab.people.logins import in_days, token_table
from spanlab.storage import Store

_USUAL: Final = "http://localhost:8501"  # of the app, without SPANLAB_URL
reports = typer.Typer(
    no_args_is_help=True,
    help="""Links to reports that can be read without a login, until they end or are revoked.

    The page Export makes them, too. A link shows the report as it was when the link was made.

    \b
    spanlab reports create mine --days 30
    spanlab reports list
    spanlab reports revoke 5e4f3d2c1b0a
    """,
)


@reports.command("create")
def create(
    dataset: Annotated[str, typer.Argument(help="The dataset, or a version DATASET@NAME.")],
    days: Annotated[int, typer.Option(min=1, max=365, help="Days until the link ends.")] = 30,
) -> None:
    """Create a link to a report as it is now, and print it once; only its hash is saved."""
    address = Settings.read().url
    with Store.open() as store:
        link = share_report(store, dataset, in_days(days))
    typer.echo(f"{(address or _USUAL).rstrip('/')}{link}")
    if not address:
        console.say(
            f"SPANLAB_URL is not set: if the app is not at {_USUAL}, put its address in this place"
        )


@reports.command("list")
def list_links() -> None:
    """List the links without what opens them."""
    with Store.open() as store:
        console.write_tables([token_table(store.access.tokens("report"), "Links to reports")])


@reports.command("revoke")
def revoke(link_id: Annotated[str, typer.Argument(metavar="ID", help="As list shows it.")]) -> None:
    """Revoke a link, and delete its page."""
    with Store.open() as store:
        store.access.revoke_token("report", link_id)
