"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "push": Command(
            "Write a dataset to Hugging Face's Hub, or verdicts back to its traces.",
            "commands:push",
            130,
        ),
    },
)
