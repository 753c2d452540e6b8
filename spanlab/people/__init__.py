"""Who may do what, and how far people are: logins, invitations, entrance tests, own lists."""
