"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Page, Room

ROOM = Room(
    commands={
        "worker": Command(
            "Work on queued jobs until Ctrl+C; any number share them.", "commands:worker", 400
        ),
        "jobs": Command("List, pause, resume, cancel and retry jobs.", "commands:app", 450),
    },
    pages=(
        Page(
            title="Jobs",
            icon="work_history",
            needs="ADMINISTER",
            about="Follow, pause and cancel what runs in the background.",
            topic="models",
            place="page:page",
            order=100,
            group="Tools",
        ),
    ),
)
