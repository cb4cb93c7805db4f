"""What leaves the console as a file: one case, as a document or as an evidence pack, and lists.

A case goes as its reader may see it: without `view_payloads` what was sent and said stays here.
Each export is an entry of the audit record, written before a byte of the file is given out.
"""

from __future__ import annotations
