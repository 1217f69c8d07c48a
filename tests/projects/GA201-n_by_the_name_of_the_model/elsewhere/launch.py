import train  # noqa: F401
