"""Multi-system combination: every member annotates, and their vote is one more annotation.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3", multi-system combination: the share of the
systems that mark a character is its soft label, and what more than half of them mark is hard.
Published scores on the English test set, the paper's and not of this code: IoU .61, Corr .65.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from spanlab.detectors.base import Finding, ModelDetector
from spanlab.detectors.spec import EnsembleSpec
from spanlab.labels import vote
from spanlab.passages import merged, renumbered
from spanlab.schema import Annotation, Item, Kind, Status


class Ensemble:
    """Detectors that vote.

    Args:
        spec: its name and members.
        members: what was built from them, in the same order.
    """

    def __init__(self, spec: EnsembleSpec, members: Sequence[ModelDetector]) -> None:
        self.spec = spec
        self.members = tuple(members)
        self.name = spec.name

    async def detect(self, item: Item) -> Finding:
        """Let all members annotate an item at the same time, and count their votes.

        Members with the same retriever read the same passages, for which it is asked once.
        """
        outcomes = await asyncio.gather(
            *(member.detect(item) for member in self.members), return_exceptions=True
        )
        said: list[Annotation] = []
        for finding in outcomes:
            if isinstance(finding, BaseException):
                raise finding  # a spent budget; what the others paid for is in the cache
            # Members with different retrievers have each found passages of their own.
            item, moved = merged(item, finding.item)
            said.append(renumbered(finding.annotation, moved))
        return Finding(tally(self.name, item, said), item, tuple(said))


def tally(name: str, item: Item, members: Sequence[Annotation]) -> Annotation:
    """Return the vote of an ensemble's members on an item.

    Args:
        name: signs the vote.
        item: what they annotated.
        members: one annotation of each member, finished or not; one that failed does not vote.

    Returns:
        The vote; failed, with the reason, if fewer than half of the members have finished.
    """
    done = [each for each in members if each.status is Status.DONE]
    if 2 * len(done) >= len(members) and done:
        return vote(item, members, name=name)
    why = "; ".join(
        f"{each.annotator}: {each.note or each.status}" for each in members if each not in done
    )
    return Annotation(
        annotator=name,
        kind=Kind.VOTE,
        status=Status.FAILED,
        voters=tuple(each.annotator for each in done),
        note=f"{len(done)} of {len(members)} members finished, fewer than half: no vote ({why})",
    )
