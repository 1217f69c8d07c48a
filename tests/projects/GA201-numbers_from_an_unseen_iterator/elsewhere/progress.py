"""Numbers what it is given."""


def numbered_from(first, things):
    yield from enumerate(things, first)
