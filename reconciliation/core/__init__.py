"""The decisions about writes, as pure Python: no Django, no clock, no I/O.

`contracts` is what a provider documents, as data. `classify` says what one answer proves.
`matching` compares what was intended with what a provider shows. `decide` is the heart: from the
facts and the time to the one next move. `options` says which decisions a person may take now.

A timeout is not a failure: an outcome that is not proven is `unknown` (promise P4).
"""
