"""What `manage.py bench` measures, and how.

Each kind of measurement is a module with `add_arguments`, `measure` and `lines`: `steps`,
`ceiling`, `latency`, `events`, `history`, `start`, `recovery`. What is measured runs in processes
of its own (`children`, and real Celery workers), on a database that is made for it and dropped
after (`database`), so that the bench's own work is in none of the figures (`costs`).

Figures of different runs, machines and moments do not compare: what belongs together is measured
in turn, in one run, and the ratios count.
"""

from __future__ import annotations
