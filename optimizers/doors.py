"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Job, Page, Room

ROOM = Room(
    commands={
        "optimize": Command(
            "Tune a detector's prompt on labels that people made.", "commands:optimize", 360
        ),
        "programs": Command(
            "Tuned prompts: list, show, compare, use, export, import.", "commands:app", 440
        ),
    },
    pages=(
        Page(
            title="Optimise",
            icon="tune",
            needs="ADMINISTER",
            about="Find a better prompt for a detector on the labels that people made.",
            topic="tuning",
            place="page:page",
            order=90,
            group="Tools",
        ),
    ),
    offers={"subjects": {"items": "units:ITEMS", "claims": "units:CLAIMS"}},
    jobs={"optimise": Job("Optimisation", "evaluation", "spanlab.optimise", "job:same")},
)
