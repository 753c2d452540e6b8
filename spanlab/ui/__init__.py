"""The pages of the browser application."""
