from argparse import Namespace


def parse_arguments():
    return Namespace(model="large")
