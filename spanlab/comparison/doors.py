"""What is offered here, at the doors of the app."""

from spanlab.doors import Page, Room

ROOM = Room(
    pages=(
        Page(
            title="Compare",
            icon="compare",
            needs="READ",
            about="See where people and detectors agree, and how well they do.",
            topic="campaigns",
            place="page:page",
            order=40,
            group="Results",
        ),
    ),
)
