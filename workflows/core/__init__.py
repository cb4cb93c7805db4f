"""The decisions of the execution record, as pure Python: no Django, no clock, no I/O.

`states` says which state may follow which. `definitions` is what an author writes, `registry`
what a process knows. `values` turns typed outputs into storable JSON and back. `retry` says when
a step is tried again. `explain` says why a run is not finished (promise P12).
"""
