"""What is measured rather than counted: corrected rates, gates, certificates, how people err."""
