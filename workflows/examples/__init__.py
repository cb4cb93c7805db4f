"""Three workflows that ship: each loses an answer in its own way, and ends with one effect."""
