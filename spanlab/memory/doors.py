"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Page, Room

ROOM = Room(
    commands={
        "memory": Command(
            "The evidence that detectors keep for later claims.", "commands:app", 430
        ),
    },
    pages=(
        Page(
            title="Memory",
            icon="psychology",
            needs="ADMINISTER",
            about="See and correct the evidence that detectors keep for later claims.",
            topic="search",
            place="page:page",
            order=110,
            group="Tools",
        ),
    ),
    offers={"kit": {"memory": ":memory"}},
)
