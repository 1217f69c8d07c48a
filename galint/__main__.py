"""`python -m galint` is the `galint` command."""

from galint.cli import main

if __name__ == "__main__":
    main()
