"""Words of one's own in the configuration file."""

from pathlib import Path

import pytest

from support.dssctl_call import Completed, call_dssctl


class Tool:
    """The tool with a configuration file of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, *arguments: str) -> Completed:
        return call_dssctl(*arguments, environ={"DSSCTL_CONFIG": str(self.path)})


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path / "config.toml")


def test_an_alias_stands_for_the_words_that_it_was_given(tool: Tool) -> None:
    assert (
        tool("config", "set", "aliases.usage", "errors ls --filter 'exit_code=2' -n 2").returncode
        == 0
    )
    plain = tool("errors", "ls", "--filter", "exit_code=2", "-n", "2", "-o", "name")
    short = tool("usage", "-o", "name")
    assert plain.returncode == 0
    assert short.stdout == plain.stdout
    assert tool("-o", "name", "usage", "--limit", "1").stdout == plain.stdout[:8]
    assert b"Usage: dssctl errors ls" in tool("usage", "--help").stdout
    shown = tool("config", "show", "-o", "csv").stdout
    assert b"aliases.usage,errors ls --filter exit_code=2 -n 2" in shown


def test_an_alias_that_is_unset_is_none_any_more(tool: Tool) -> None:
    tool("config", "set", "aliases.usage", "errors ls")
    near = tool("usagge")
    assert near.returncode == 2
    assert b"Did you mean 'usage'?" in near.stderr
    assert tool("config", "unset", "aliases.usage").returncode == 0
    assert tool("usage").returncode == 2


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("aliases.groups", "topics ls", b"'groups' has a meaning already"),
        ("aliases.rm", "topics ls", b"'rm' has a meaning already"),
        ("aliases.x", "topcs ls", b"there is no command 'topcs'. Did you mean topics"),
        ("aliases.x", "'topics", b"is no command line"),
        ("aliases.x", "", b"an alias stands for a command"),
        ("aliases.a b", "topics ls", b"is no word"),
        ("aliases", "topics ls", b"is not aliases.NAME"),
    ],
)
def test_an_alias_that_could_not_be_used_is_refused(
    key: str, value: str, said: bytes, tool: Tool
) -> None:
    refused = tool("config", "set", key, value)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not tool.path.exists()


def test_an_alias_takes_no_word_from_the_tool(tool: Tool) -> None:
    tool.path.write_text('[aliases]\nversion = "errors ls"\nodd = "frobnicate"\n')
    assert tool("version").stdout.startswith(b"dssctl ")
    odd = tool("odd")
    assert odd.returncode == 2
    assert b"stands for 'frobnicate', which is no command" in odd.stderr


def test_a_context_that_is_read_only_is_so_by_an_alias_too(tool: Tool) -> None:
    tool.path.write_text('read_only = true\n[aliases]\ngone = "topics rm --yes"\n')
    assert tool("gone", "orders", "--endpoint", "unix:/nowhere/s").returncode == 7
