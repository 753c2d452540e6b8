"""A scripted language model for tests of detectors: a real HTTP endpoint on this machine.

It speaks OpenAI's chat protocol over sockets, so that clients, time limits, retries and parsing
are tested as they run; nothing needs to be patched, no key is needed and nothing is paid.

>>> import os
>>> import spanlab
>>> from spanlab.schema import Item, Passage, Record
>>> from spanlab.testing import ModelServer, say_fields
>>> tower = Item(
...     id="tower",
...     lang="en",
...     question="When was the tower built?",
...     answer="It was built in 1989.",
...     passages=(Passage(text="The tower was built in 1889."),),
... )
>>> wrong = {"text": "1989", "reason": "it was 1889", "probability": 0.9}
>>> with ModelServer(lambda ask: say_fields(parts=[wrong])) as server:
...     os.environ["OPENAI_BASE_URL"] = server.url
...     os.environ["OPENAI_API_KEY"] = "any"
...     os.environ["SPANLAB_MODEL"] = "scripted"
...     (record,) = spanlab.annotate([Record(item=tower)], "ucsc-extract")
>>> [span.text for span in record.annotations[0].spans]
['1989']
>>> "The tower was built in 1889." in server.requests[0].text
True

A script is any function from ``ModelRequest`` to ``ScriptedReply``: ``say``, ``say_fields`` and
``fail`` make replies, ``in_turn``, ``rules`` and ``call_tools`` make scripts. A request with
``stream`` is answered by server-sent events, one to ``/embeddings`` by vectors that are the closer
the more words two texts share, unless the script has an error or a body of its own for it.

``server.mode = "think"`` has a script's replies wrapped as one of the servers or models in
``MODES`` does: reasoning in the content, errors under status 200 and so on.
``InBackground`` is the base for other servers.

Tests of pipelines have ``assert_grounded(answer, passages)``, and pytest the option
``--spanlab-detector`` (``spanlab.pytest_plugin``).
"""

from __future__ import annotations

from spanlab.testing.grounding import UngroundedError, assert_grounded
from spanlab.testing.modes import MODES, ServerMode
from spanlab.testing.replies import (
    ModelRequest,
    Script,
    ScriptedReply,
    call_tools,
    caller_with,
    fail,
    in_turn,
    rules,
    say,
    say_fields,
)
from spanlab.testing.server import InBackground, ModelServer

__all__ = [
    "MODES",
    "InBackground",
    "ModelRequest",
    "ModelServer",
    "Script",
    "ScriptedReply",
    "ServerMode",
    "UngroundedError",
    "assert_grounded",
    "call_tools",
    "caller_with",
    "fail",
    "in_turn",
    "rules",
    "say",
    "say_fields",
]
