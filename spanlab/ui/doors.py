"""The pages that are offered here, in the order of the work.

A group is a menu in the row, as eleven pages beside each other are not taken in; what is used all
day stands in the row itself.
"""

from spanlab.doors import OWN, Page, Room

ROOM = Room(
    pages=(
        Page(
            title="Review",
            icon="edit_note",
            needs="REVIEW",
            about="Go through answers and accept, reject or draw spans.",
            topic="review",
            place="views.review:page",
            order=10,
        ),
        Page(
            title="Datasets",
            icon="database",
            needs="MANAGE",
            about="Import answers, and see who has annotated them.",
            topic="formats",
            place="views.datasets:page",
            order=20,
        ),
        Page(
            title="Detect",
            icon="manage_search",
            needs="ADMINISTER",
            about="Let detectors suggest spans; the cost is shown before they start.",
            topic="detectors",
            place="views.detect:page",
            order=30,
        ),
        Page(
            title="Compare",
            icon="compare",
            needs="READ",
            about="See where people and detectors agree, and how well they do.",
            topic="campaigns",
            place="views.compare:page",
            order=40,
            group="Results",
        ),
        Page(
            title="Measure",
            icon="straighten",
            needs="READ",
            about="Estimate how often answers are hallucinated, with an interval.",
            topic="measuring",
            place="views.measure:page",
            order=50,
            group="Results",
        ),
        Page(
            title="Export",
            icon="download",
            needs="EXPORT",
            about="Export labels in the format that you need.",
            topic="formats",
            place="views.export:page",
            order=60,
        ),
        Page(
            title="Campaign",
            icon="groups",
            needs="MANAGE",
            about="Set up a review by several people, follow it, and finish it.",
            topic="campaigns",
            place="views.campaign:page",
            order=70,
            group="Team",
        ),
        Page(
            title="Adjudicate",
            icon="gavel",
            needs="ADJUDICATE",
            about="Decide where people differ; the result is gold labels.",
            topic="review",
            place="views.adjudicate:page",
            order=80,
            group="Team",
        ),
        Page(
            title="Jobs",
            icon="work_history",
            needs="ADMINISTER",
            about="Follow, stop and resume what runs in the background.",
            topic="models",
            place="views.jobs:page",
            order=100,
            group="Tools",
        ),
        Page(
            title="Access",
            icon="key",
            needs="MANAGE",
            about="Give people roles, invite them, and make keys for programs.",
            topic="team",
            place="views.access:page",
            order=120,
            group=OWN,
        ),
    ),
)
