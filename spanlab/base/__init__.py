"""What all stands on and nothing of answers is in: errors, options, settings, processes."""
