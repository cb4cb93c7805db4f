"""English, as the console writes it."""
