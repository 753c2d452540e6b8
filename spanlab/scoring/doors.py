"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "score": Command(
            "Score predictions against gold labels: IoU, Corr and more.", "commands:score", 50
        ),
        "raters": Command("Estimate how reliable each person is.", "commands:raters", 100),
        "agreement": Command(
            "Report agreement on characters and on verdicts.",
            "commands:agreement",
            110,
        ),
    },
    offers={"formats": {"averitec": "averitec_files:FORMAT", "claims": "claim_files:FORMAT"}},
)
