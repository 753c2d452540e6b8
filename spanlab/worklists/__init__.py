"""What is next for whom: each person's stored list, how it is drawn, and queries over it."""
