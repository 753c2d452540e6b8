"""Jobs with a key of a browser's session: only the process that holds the key works on them."""

from __future__ import annotations

import json
from typing import Any

from spanlab.errors import UsageError
from spanlab.jobs import worker
from spanlab.lm.secrets import KEY_IS_GONE, is_lent, lent_names


def queue_for(asked: dict[str, Any], shared: str) -> str:
    """Return the queue for a request's job or parts.

    Args:
        asked: the request as JSON.
        shared: the queue for what any worker may do.

    Returns:
        That queue, or this process's own if the request needs a key that is here alone.

    Raises:
        UsageError: the key is gone, or this process does not work on jobs.
    """
    names = lent_names(json.dumps(asked))
    if not names:
        return shared
    if not all(map(is_lent, names)):
        raise UsageError(KEY_IS_GONE)
    return worker.current().own_queue
