"""Programs as an optimisation saves them."""

from __future__ import annotations

from spanlab.schema import HeldOut, HeldOutScore, TunedPredictor, TunedProgram


def tuned_program(
    name: str,
    instruction: str = "Quote it.",
    low: float = 0.02,
    detector: str = "ucsc-extract",
    demo: dict[str, object] | None = None,
) -> TunedProgram:
    """Return a program that scores 0.1 higher on held-out items.

    Args:
        name: of the program.
        instruction: of its predictor.
        low: end of the difference's interval; below 0 the program is not significantly better.
        detector: for which it was tuned.
        demo: its demonstration, if there is one.
    """
    return TunedProgram(
        name=name,
        detector=detector,
        strategy="mipro",
        metric="iou",
        task_model="small",
        prompt_model="large",
        dataset="mine",
        labels="gold",
        languages=("de", "en"),
        items=40,
        fingerprint="f" * 64,
        created=f"2026-11-2{len(name)}T12:00:00+00:00",
        held_out=HeldOut(
            items=40,
            folds=2,
            baseline=HeldOutScore(mean=0.4, low=0.3, high=0.5),
            tuned=HeldOutScore(mean=0.5, low=0.4, high=0.6),
            difference=HeldOutScore(mean=0.1, low=low, high=0.18),
            p=0.0123 if low > 0 else 0.123,
            languages={"de": (0.3, 0.5), "en": (0.5, 0.5)},
        ),
        predictors={
            "extract": TunedPredictor(instruction=instruction, demos=(demo,) if demo else ())
        },
    )
