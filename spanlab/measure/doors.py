"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Page, Room

ROOM = Room(
    commands={
        "rates": Command(
            "Report how often answers are hallucinated, by model or another field.",
            "commands:rates",
            60,
        ),
        "measure": Command(
            "Estimate the hallucination rate from a detector and reviews.",
            "commands:measure",
            70,
        ),
        "gate": Command(
            "Fail if the hallucination rate of a dataset is too high.", "commands:gate", 80
        ),
    },
    pages=(
        Page(
            title="Measure",
            icon="straighten",
            needs="READ",
            about="Estimate how often answers are hallucinated, with an interval.",
            topic="measuring",
            place="page:page",
            order=50,
            group="Results",
        ),
    ),
)
