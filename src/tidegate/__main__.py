"""Run the command line as `python -m tidegate`."""

from tidegate.cli import run

if __name__ == "__main__":
    run()
