"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "fit": Command(
            "Teach the offline detector the corrections that people made.", "fit_commands:fit", 335
        ),
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
