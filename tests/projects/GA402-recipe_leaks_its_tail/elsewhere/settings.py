def parse_settings():
    raise SystemExit("see launch.py")
