"""`python -m selftime` is the command `selftime`."""

from selftime.cli import main

if __name__ == "__main__":
    main()
