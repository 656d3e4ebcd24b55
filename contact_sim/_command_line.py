"""What the command lines of the package have in common: names in any case, examples, help."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence

from contact_sim.errors import UnknownName, known_name


def one_of(kind: str, names: Iterable[str]) -> Callable[[str], str]:
    """Return the `type` of an option: a name, in upper or lower case; errors suggest one."""
    known = tuple(names)

    def named(text: str) -> str:
        try:
            return known_name(kind, text, known)
        except UnknownName as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return named


def parser_with_examples(
    prog: str, description: str, examples: Sequence[str], more: str = ''
) -> argparse.ArgumentParser:
    """Return a parser whose help ends with examples.

    Args:
        prog: how the program is called, which the examples begin with.
        description: what it does.
        examples: arguments of each example; a comment may follow after `  # `.
        more: text after the examples.
    """
    lines = '\n'.join(f'  {prog} {example}' for example in examples)
    return argparse.ArgumentParser(
        prog=prog, description=description, epilog=f'examples:\n{lines}\n{more}'.rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip


def ros_help(words: Sequence[str], prog: str, description: str, examples: Sequence[str]) -> bool:
    """Print the help of a ROS program where it is asked for before --ros-args; return whether."""
    own = words[: words.index('--ros-args')] if '--ros-args' in words else words
    if not {'-h', '--help'} & set(own):
        return False
    lines = '\n'.join(f'  {prog} {example}' for example in examples)
    print(
        f'usage: {prog} [--ros-args -p NAME:=VALUE ... -r FROM:=TO ...]\n\n{description}\n\n'
        f'examples:\n{lines}'
    )
    return True
