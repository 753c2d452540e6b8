"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "encoder": Command(
            "Get, train, convert, list and check checkpoints for the encoders.", "commands:app", 420
        ),
        "calibrate": Command(
            "Calibrate the probabilities of the detector encoder.", "commands:calibrate", 350
        ),
    },
    offers={
        "detectors": {
            "encoder": ":ENCODER",
            "encoder-nli": ":NLI",
            "encoder-nli-claims": ":NLI_CLAIMS",
        },
        "path-names": {"fetched": "checkpoints:fetched_checkpoints"},
    },
)
