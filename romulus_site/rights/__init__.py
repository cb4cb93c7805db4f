"""Who can do what with which object: shown, given and taken, on record (docs/accounts.md)."""
