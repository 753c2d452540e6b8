"""Claims: statements taken out of an answer, their verdicts, and claims back into its words.

extraction ─── an answer becomes self-contained claims, sentence by sentence
sub_claims ─── a claim is taken apart again and again until its parts stay whole
rulings ────── verdicts as models give them, and the reason
placing ────── the words of the answer that state the wrong part of a claim
"""
