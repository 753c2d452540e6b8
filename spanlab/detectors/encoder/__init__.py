"""Local encoders: classifiers of tokens, and of pairs of texts, that run on this machine.

    entry ──────── what both detectors say of themselves, and their options
    detector ───── ``encoder``: every word of an answer is rated
    verifying ──── ``encoder-nli``, ``encoder-nli-claims``: sentences or claims are judged
    formats ────── what the model reads before the answer
    words ──────── from tokens to words to spans: the rule
    calibration ── probabilities as people's labels have them

Folders, networks and tokenizers are in ``detectors/common``, for any detector that runs one.
"""
