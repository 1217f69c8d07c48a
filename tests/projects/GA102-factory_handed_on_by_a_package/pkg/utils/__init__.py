from .make import setup_optimizer
