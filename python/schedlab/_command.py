"""The command `schedlab`, as the wheel installs it."""

import sys


def main() -> int:
    """Runs the command with the arguments of this process."""
    if sys.argv[1:2] == ["tune"]:
        from schedlab import tune

        return tune.main(sys.argv[2:])
    from schedlab import _schedlab

    return _schedlab.command_line(["schedlab", *sys.argv[1:]])
