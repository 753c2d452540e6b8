"""VeriTrail: claims followed from the answer back to its sources, round by round."""
