tpu = None


def is_tpu_available():
    return False
