"""``python -m lightsplit``: the command line where its script is not on the path."""

from lightsplit.cli.app import main

if __name__ == "__main__":
    main()
