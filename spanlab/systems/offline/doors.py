"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "train-offline": Command(
            "Train the offline detector on labelled items.", "commands:train_offline", 340
        ),
    },
    offers={
        "detectors": {
            "offline": ":ENTRY",
        }
    },
)
