"""The checks, one rule a file: pure functions from a run's facts to findings.

Each module has `CODE`, `WITNESS` ("even": loaders that N divides; "tail": loaders that it does not) and
`check(view) -> Iterator[Finding]`.
"""
