"""What labels come to: scores, agreement, rates, stages, and how people get on."""
