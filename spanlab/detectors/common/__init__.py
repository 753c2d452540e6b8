"""What detectors that ask a language model share; no detector itself.

    modelled ───── the base class: an item's way through a detector, failures, what calls came to
    context ────── the passages of an item as text for a prompt; ``selection`` if there are too many
    marking ────── what a mapper found as spans, and as steps of a trace
    evidence ───── the sentence of the passages that a span or claim is to be read beside

What a detector works with (its ``Kit``) and how it is found (its ``Entry``) is one floor up.
"""
