"""The app as a whole: its server, its navigation, logins, help, and commands that serve."""
