"""Confirming without the user's data: slices of training loops, and the small real world they run in.

`slicing` and `expressions` (no torch) rebuild a loop's gradient skeleton as a Python program; the other modules are
imported in the child process only and drive it with a real model, optimizer, GradScaler and DDP.
"""

SLICE = "galint_slice.py"
"""The file name that a slice's code carries; its lines are the user's (those of followed files shifted)."""
