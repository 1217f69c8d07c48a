from .network import Encoder
from .optimizer import ScheduledOptim

__all__ = ["Encoder", "ScheduledOptim"]
