"""Signing in: what of it is ours, around django-allauth (docs/adr/0009).

Accounts are made by administrators and nobody makes their own. What happens to an account goes
into the audit record.
"""
