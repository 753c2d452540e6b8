"""What people ask for: import, detect, vote, review, evaluate, export."""
