"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Page, Room

ROOM = Room(
    commands={
        "campaign": Command(
            "Show a campaign's progress and expected finish; reassign items.",
            "commands:campaign",
            90,
        ),
    },
    pages=(
        Page(
            title="Campaign",
            icon="groups",
            needs="READ",
            about="Set up a review by several people, see how far they are, and finish it.",
            topic="campaigns",
            place="page:page",
            order=70,
            group="Team",
        ),
    ),
)
