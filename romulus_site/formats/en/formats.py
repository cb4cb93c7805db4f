"""Times as the console writes them: to the second, with their zone, the same everywhere."""

from __future__ import annotations

DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = r"Y-m-d H:i:s \U\T\C"
SHORT_DATE_FORMAT = DATE_FORMAT
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
