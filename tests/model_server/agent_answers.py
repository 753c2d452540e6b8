"""An agent that asks Wikipedia about a tower of which nothing is known, and the article."""

from __future__ import annotations

import re

from prompts import prompt_of

from spanlab.testing import ModelRequest, ScriptedReply, say_fields

TITLE = "Tower of Aldmere"
FACT = "The tower of Aldmere was finished in 1889."
THOUGHT = "Wikipedia should know."
ARTICLE = ScriptedReply(
    body={
        "batchcomplete": True,
        "query": {
            "pages": [
                {
                    "title": TITLE,
                    "extract": f"{FACT} Trees are green.\n\n== History ==\nIt rains.",
                    "fullurl": "https://en.wikipedia.org/wiki/Tower_of_Aldmere",
                }
            ]
        },
    }
)


def agent(ask: ModelRequest) -> ScriptedReply | None:
    """Return what mermaid's prompts are answered with; None for another detector's."""
    prompt = prompt_of(ask)
    wanted = re.findall(r"`\[\[ ## (\w+) ## \]\]`", prompt)[0]
    if wanted == "decomposition":
        triplet = {"subject": TITLE, "relation": "is", "object": "old", "attributes": []}
        return say_fields(decomposition={"triplets": [triplet], "topics": ["towers"]})
    if wanted != "step":
        return None
    known = prompt.split("[[ ## known ## ]]")[1].split("[[ ## ")[0].strip()
    if known == "nothing" and "no steps yet" in prompt:
        call = {"tool": "wikipedia.wikipedia_summary", "arguments": {"title": "Aldmere Tower"}}
        return say_fields(step={"thought": THOUGHT, "action": call})
    return say_fields(step={"thought": "It is from 1889.", "answer": "refuted"})
