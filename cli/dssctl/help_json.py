"""The command tree as a JSON document, for programs that use the tool.

Invariant: it has everything that a command takes, does and prints; global options are in it once.
"""

import json

from dssctl.command_tree import CommandNode, Parameter, command_tree
from dssctl.output.model import API_VERSION

GLOBAL = "Global options"
"""The section of the options that every command takes."""

Document = dict[str, object]


def help_json(words: tuple[str, ...] = ()) -> str:
    """The whole tree, or the part below these words."""
    node = command_tree()
    every = [each for each in node.options if each.section == GLOBAL]
    for word in words:
        node = next(child for child in node.children if child.words[-1] == word)
    document = {
        "apiVersion": API_VERSION,
        "kind": "CommandTree",
        "globalOptions": [_parameter(each) for each in every],
        "commands": [_command(each) for each in node.commands()],
    }
    return json.dumps(document, indent=1, ensure_ascii=False)


def _command(node: CommandNode) -> Document:
    own = [each for each in node.options if each.section != GLOBAL and "--help" not in each.flags]
    return {
        "command": node.path,
        "impact": node.impact,
        "summary": node.summary,
        "prints": list(node.prints),
        "arguments": [_parameter(each) for each in node.arguments],
        "options": [_parameter(each) for each in own],
    }


def _parameter(parameter: Parameter) -> Document:
    facts: Document = {
        "flags": [*parameter.flags, *parameter.off_flags],
        "value": parameter.value,
        "type": parameter.type,
        "choices": list(parameter.choices),
        "required": parameter.required,
        "repeated": parameter.repeated,
        "default": parameter.default,
        "help": parameter.help,
    }
    if parameter.is_argument:
        del facts["flags"]
    return {name: value for name, value in facts.items() if value not in (None, [], False)}
