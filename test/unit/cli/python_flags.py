"""Writes fixtures/python-flags.json: every command of the Python `tinker` command, with its arguments and options.

Run with a Python that has the SDK installed (facts were recorded from tinker 0.36.0):
    python test/unit/cli/python_flags.py
"""

import json
import pathlib

import click
from tinker._version import __version__
from tinker.cli.__main__ import main_cli


def describe(command, context):
    facts = {"arguments": [], "options": []}
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            facts["arguments"].append({"required": parameter.required, "several": parameter.nargs == -1})
        else:
            facts["options"].append(
                {
                    "names": sorted(parameter.opts),
                    "flag": bool(parameter.is_flag),
                    "several": bool(parameter.multiple),
                    "default": parameter.default if isinstance(parameter.default, (int, str)) else None,
                }
            )
    return facts


def walk(command, path, out):
    context = click.Context(command)
    out[" ".join(path)] = describe(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            walk(command.get_command(context, name), [*path, name], out)


commands = {}
walk(main_cli, [], commands)
target = pathlib.Path(__file__).parent / "fixtures" / "python-flags.json"
target.write_text(json.dumps({"version": __version__, "commands": commands}, indent=1) + "\n")
