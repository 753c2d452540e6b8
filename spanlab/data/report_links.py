"""Links to reports: a page as it was, which anyone with the link reads until it ends."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from datetime import datetime
from io import BytesIO
from typing import Any, Final

from spanlab.base.errors import UsageError
from spanlab.data.export_choice import REPORT, ExportChoice
from spanlab.data.exporting import export_dataset
from spanlab.schema import Permission
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of

REPORTS: Final = "/report"  # the path of links
MOST: Final = 16 << 20  # bytes of a page


class _BoundedPage(BytesIO):
    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > MOST:
            raise UsageError(
                f"the report is larger than {MOST >> 20} MiB, the most that a link may show: "
                "choose fewer items or annotators, or send the file"
            )
        return super().write(data)


def share_report(
    store: Store, dataset: str, expires: datetime, choice: ExportChoice | None = None
) -> str:
    """Keep a report as it is now, and return the path of the link to it.

    Args:
        store: the annotation database, as who shares it may see it.
        dataset: a dataset or a version.
        expires: when the link ends.
        choice: whose annotations of which items; by default all.

    Raises:
        AccessError: the actor of ``store`` does not lead the dataset.
        NotFoundError: there is no such dataset.
        UsageError: the end has passed, or the report is too large.
    """
    owner = summary_of(store, dataset).version_of or dataset
    store.require(Permission.MANAGE, owner)
    page = _BoundedPage()
    export_dataset(store, dataset, page, (choice or ExportChoice()).model_copy(update=_AS_REPORT))
    packed = b64encode(zlib.compress(page.getvalue())).decode()
    return f"{REPORTS}?to={store.access.share_page(owner, packed, expires, label=dataset)}"


_AS_REPORT: Final = {"format": REPORT}


def shared_report(store: Store, link: str) -> bytes | None:
    """Return the page of a link; None if it is unknown, revoked or too old."""
    packed = store.access.shared_page(link)
    return None if packed is None else zlib.decompress(b64decode(packed))
