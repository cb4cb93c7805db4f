"""How the admin and other templates write times and numbers."""
