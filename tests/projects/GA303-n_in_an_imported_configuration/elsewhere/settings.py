from types import SimpleNamespace

cfg = SimpleNamespace(TRAIN=SimpleNamespace(UPDATES=3, GRAD_ACCUM=4))
