"""Runs the command `selftime` for `python -m selftime`."""

from selftime.cli import main

if __name__ == "__main__":
    main()
