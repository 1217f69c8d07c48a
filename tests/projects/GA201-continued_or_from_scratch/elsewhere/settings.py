import argparse


def get_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--continue-folder", default=None)
    parser.add_argument("--run-name", default="run")
    return parser


def read(path):
    return {"epochs": 2, "accumulation": 4}
