"""`python -m evoengine` is the command line."""

from evoengine.cli.main import main

if __name__ == "__main__":
    main()
