"""The authorisation boundary (promise P11): who may do what to which system, now.

Everything here is a value or a pure function of values: policies as data (`policy`), who asks and
who has approved (`requests`, `subjects`), the answer with each of its checks (`verdict`,
`evaluate`), and the one way of writing parameters down (`canonical`). Whoever evaluates reads the
facts first, in the transaction in which the answer counts.
"""
