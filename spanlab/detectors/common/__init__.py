"""What detectors that ask a language model share; no detector itself.

    model_detector ── the base class: an item's way through a detector, failures, what calls came to
    claim_detector ── the base class of those that take claims out of an answer and judge each
    context ───────── the passages of an item as text for a prompt, chosen if there are too many
    evidence ──────── the sentence of the passages that a span or claim is to be read beside
    options ───────── what people may set of several detectors

What a detector works with (its ``DetectorKit``) and how it is found (its ``DetectorEntry``) is one
floor up.
"""
