"""The detectors of "UCSC at SemEval-2025 Task 3" (Huang et al. 2025).

The system that won the Mu-SHROOM shared task by average rank: retrieve context for a question,
extract what an answer says beyond it, map that to characters.

    extract   quotes of the answer → their places
    kg        facts of the answer, checked against a graph of the passages → the words stating them
    revise    the answer, corrected with the fewest changes → what was changed

``spanlab.detectors.ensemble`` lets several of them vote.
"""
