"""``python -m ruleout`` is ``ruleout``."""

from ruleout.cli import app

if __name__ == "__main__":
    app(prog_name="ruleout")
