"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Export, Room

ROOM = Room(
    commands={
        "reason": Command(
            "Answer questions step by step; a verifier checks every step.", "commands:reason", 30
        ),
        "verify-benchmark": Command(
            "Verify that passages of questions lead to their known answers.",
            "supervision_commands:verify_benchmark",
            370,
        ),
        "ideal-trajectories": Command(
            "Have a model write an ideal reasoning for every question.",
            "supervision_commands:ideal_trajectories",
            380,
        ),
        "verifier-data": Command(
            "Write chats to train a verifier of steps on.",
            "supervision_commands:verifier_data",
            390,
        ),
    },
    exports={
        "verifier-data": Export(
            "Verifier training data",
            "A zip of chats from judged steps of reasonings, in three splits.",
            "zip",
            "application/zip",
            "verifier_data:zip_verifier_data",
            "spanlab.systems.safe.panel:is_reasoned",
        )
    },
    offers={
        "formats": {"multihop": "questions:FORMAT"},
        "steps": {"reasoning": "trace:ReasoningTraceStep"},
        "panels": {"reasoning": "panel:PANEL"},
        "detectors": {
            "safe": "entries:ENTRY",
        },
        "evaluations": {"steps": "step_scores:score_step_files"},
        "pairings": {"steps": "step_scores:step_pairs"},
        "subjects": {"steps": "tuning:STEPS", "questions": "tuning:QUESTIONS"},
    },
)
