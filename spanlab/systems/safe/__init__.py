"""SAFE: every step of a reasoning is verified, its error named, and while reasoning mended.

``commands.py`` reads questions, and ``reasoning.py`` has many of them answered at once.
``controller.py`` is the loop without models: generate, verify, revise, conclude; ``reasoner.py``
gives it a generator, the detector's verifier, and a search for missing evidence. The resulting item
has the steps as its answer, and all attempts in its trace; ``results.py`` compares ways of
verifying. ``reasoning.py`` also turns questions into training data: ``grounding.py`` verifies them
on a graph of their passages, and ``ideal.py`` checks plans and their steps.
"""
