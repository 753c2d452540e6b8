"""Train and calibrate detectors on one's own labels, and fetch checkpoints for them."""
