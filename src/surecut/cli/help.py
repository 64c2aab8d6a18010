"""The help of a command as a person reads it: 80 columns are enough, examples stand as they are typed.

Typer's own rendering shows a programmer's types and changes from version to version.
"""

from __future__ import annotations

import inspect
import os
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

WIDEST = 100
"""Longer lines are hard to read, however wide the window."""
NAMES_WIDTH = 24
"""An option with a longer name has its explanation below it."""

UsageError: Any = typer.BadParameter.__bases__[0]
"""Of click, which some versions of Typer bring along."""

INSTEAD = {"--json": "--format json", "--csv": "--format table", "-o": "--out", "--output": "--out"}
"""What people type, and what it is called here."""


def _refuse(error: Any, ctx: Any) -> NoReturn:
    """An option or command that does not exist, or is missing: a sentence, and exit code 2."""
    if type(error).__name__ == "NoArgsIsHelpError":  # nothing was asked for
        typer.echo(ctx.get_help())
        raise typer.Exit(2)
    said = error.format_message().rstrip(".").replace("Value error, ", "")
    asked = getattr(error, "option_name", None)
    if asked in INSTEAD:
        said = f"No such option: {asked}, it is {INSTEAD[asked]} here"
    elif asked == "--debug":
        said = "--debug goes before the command, such as surecut --debug tune"
    typer.secho(f"surecut: {said}", fg=None if os.environ.get("NO_COLOR") else "red", err=True)
    typer.echo(f"See {ctx.command_path} --help", err=True)
    raise typer.Exit(2)


def _refusing(parse: Callable[..., Any]) -> Any:
    """The same, with errors that look like all others."""

    def parse_or_refuse(self: Any, ctx: Any, args: list[str]) -> Any:
        try:
            return parse(self, ctx, args)
        except UsageError as error:
            _refuse(error, ctx)

    return parse_or_refuse


def _format_help(self: Any, ctx: Any, formatter: Any) -> None:
    formatter.write("\n".join(_lines(self, ctx)) + "\n")


class Command(TyperCommand):
    """A command with our help and our errors."""

    parse_args = _refusing(TyperCommand.parse_args)
    format_help = _format_help


class Group(TyperGroup):
    """A group of commands with our help and our errors."""

    parse_args = _refusing(TyperGroup.parse_args)
    resolve_command = _refusing(TyperGroup.resolve_command)
    format_help = _format_help


def with_our_help(app: typer.Typer) -> typer.Typer:
    """Give an app, and all commands below it, this help."""
    app.info.cls = Group
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            with_our_help(group.typer_instance)
    return app


def _lines(command: Any, ctx: Any) -> Iterator[str]:
    width = min(shutil.get_terminal_size().columns, WIDEST) - 1
    shown = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    options = [param for param in shown if param.param_type_name == "option"]
    below = {name: command.get_command(ctx, name) for name in getattr(command, "commands", {})}

    required = [_name(param) for param in [*arguments, *(option for option in options if option.required)]]
    usage = [ctx.command_path, *required, "[OPTIONS]", *(["COMMAND"] if below else [])]
    yield from textwrap.wrap(f"{_bold('Usage:')} {' '.join(usage)}", width, subsequent_indent="  ")
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield ""
        yield from textwrap.wrap(" ".join(paragraph.split()), width)
    commands = [(name, _first_sentence(one.help or "")) for name, one in below.items() if not one.hidden]
    for title, rows in (
        ("Arguments", [(_name(param), _explanation(param)) for param in arguments]),
        ("Commands", commands),
        ("Options", [(_name(param), _explanation(param)) for param in options]),
    ):
        yield from _section(title, rows, width)
    if command.epilog:
        title, *examples = inspect.cleandoc(command.epilog).splitlines()
        yield ""
        if not examples:
            yield from textwrap.wrap(title, width)
            return
        yield _bold(title)
        yield from (f"  {line}" for line in examples)


def _section(title: str, rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    rows = list(rows)
    if not rows:
        return
    yield ""
    yield _bold(f"{title}:")
    wide = min(max(len(name) for name, _ in rows), NAMES_WIDTH)
    for name, text in rows:
        first, *others = textwrap.wrap(text, max(width - wide - 4, 20)) or [""]
        if len(name) > wide:
            yield f"  {name}"
        yield f"  {name if len(name) <= wide else '':{wide}}  {first}".rstrip()
        yield from (f"{'':{wide + 4}}{other}" for other in others)


def _name(param: Any) -> str:
    """An argument or option as it is typed."""
    value = param.metavar or (param.name or "").upper()
    if param.param_type_name == "argument":
        return str(value)
    names = ", ".join([*sorted(param.opts, key=len), *param.secondary_opts])
    return names if param.is_flag else f"{names} {value}"


def _explanation(param: Any) -> str:
    text, default = param.help or "", param.default
    if isinstance(param.show_default, str):
        return f"{text} [default: {param.show_default}]"
    if param.required or not param.show_default or callable(default):
        return text
    if default is None or default is False or default == []:
        return text
    return f"{text} [default: {default.value if isinstance(default, Enum) else default}]"


def _first_sentence(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _bold(text: str) -> str:
    return text if os.environ.get("NO_COLOR") else typer.style(text, bold=True)
