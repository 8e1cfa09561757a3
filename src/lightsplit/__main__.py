"""``python -m lightsplit``: the command line without its installed script."""

from lightsplit.cli.app import main

if __name__ == "__main__":
    main()
