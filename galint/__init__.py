"""galint: find the mistakes by which gradient accumulation silently trains something else."""

__version__ = "0.1.0"
