"""The commands and Python blocks of Markdown pages, checked against the present package without running them."""

import ast
import importlib
import inspect
import re
import shlex
from contextlib import suppress

import typer

from unweave.cli.app import app
from unweave.config.settings import all_settings
from unweave.data import DATASETS, USER_DATASETS, VIEWS
from unweave.methods import METHODS

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(unweave [a-z](?:[^`\n]|\n(?!\n))*)`")
INDENTED = re.compile(r"^ {4}(?:\$ )?(unweave .*)$", re.MULTILINE)


def commands(text):
    """Return every `unweave ...` command of a page: in code blocks, indented, and in inline code."""
    blocks = [body for language, body in BLOCK.findall(text) if language not in ("python", "markdown")]
    shell = [body.replace("\\\n", " ") for body in blocks]
    lines = [line.strip().removeprefix("$ ") for body in shell for line in body.splitlines()]
    prose = BLOCK.sub("", text)
    found = [line for line in lines if line.startswith("unweave ")]
    inline = [re.sub(r"\s+", " ", line) for line in INLINE.findall(prose)]
    return [*found, *INDENTED.findall(prose), *inline]


def check_command(line):
    """Raise if the command, one of its options, its method, metric or data set does not exist."""
    words = shlex.split(line, comments=True)[1:]
    while words and words[-1] in ("...", "…"):
        words.pop()
    command = typer.main.get_command(app)
    while words and (group := getattr(command, "commands", None)):
        assert words[0] in group, f"{line!r}: no command {words[0]!r}"
        command = group[words.pop(0)]
    options, _, _ = command.make_parser(command.context_class(command)).parse_args(words)
    if command.name == "train":
        check_train(line, options)


def check_train(line, options):
    """Raise if the method, a setting of it, or the data set of a `train` command does not exist."""
    given = [text.partition("=")[::2] for text in options.get("set") or []]
    settings = {name: value.split(",")[0] for name, value in given}
    for name in filter(None, (options.get("method") or "").split(",")):
        if name.isupper():  # a placeholder
            continue
        assert name in METHODS, f"{line!r}: no method {name!r}"
        known = set().union(*all_settings(METHODS[name], settings))
        assert settings.keys() <= known, f"{line!r}: no setting {settings.keys() - known} of {name}"
    call = re.match(r"(\w+)(\(|$)", options.get("data") or "")
    if call and call[2]:
        assert call[1] in {*DATASETS, *USER_DATASETS, *VIEWS}, f"{line!r}: no data set {call[1]!r}"


def check_data_calls(text):
    """Raise if a call of a data set or view, such as "sprites(size=32)", has an option that does not exist."""
    constructors = {**DATASETS, **USER_DATASETS, **VIEWS}
    del constructors["clips"]  # the name of a supervision kind too
    for match in re.finditer(rf"\b({'|'.join(constructors)})\(", text):
        end = closing_parenthesis(text, match.end())
        with suppress(SyntaxError):  # prose
            call = ast.parse(re.sub(r"\s+", " ", text[match.start() : end]), mode="eval").body
            options = inspect.signature(constructors[match[1]]).parameters
            unknown = {keyword.arg for keyword in call.keywords} - set(options)
            assert not unknown, f"{match[1]}: no option {unknown}"


def closing_parenthesis(text, start):
    """Return the position after the parenthesis that closes the one before `start`."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if not depth:
            return position + 1
    return start


def python_blocks(text):
    return [body for language, body in BLOCK.findall(text) if language == "python"]


def check_python(block):
    """Raise if an import of the block, an attribute of an imported module, or a keyword of a call does not exist."""
    tree = ast.parse(block)
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = importlib.import_module(alias.name)
                names[alias.asname or alias.name.split(".")[0]] = module
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            for alias in node.names:
                names[alias.asname or alias.name] = getattr(module, alias.name)
    names.setdefault("uw", importlib.import_module("unweave"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            resolve(node, names)
        elif isinstance(node, ast.Call) and callable(function := resolve(node.func, names)):
            check_keywords(function, [keyword.arg for keyword in node.keywords if keyword.arg])


def resolve(node, names):
    """Return what a name such as `uw.train` refers to; None if it does not start with an imported name."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and inspect.ismodule(parent := resolve(node.value, names)):
        return getattr(parent, node.attr)
    return None


def check_keywords(function, keywords):
    if getattr(function, "__module__", "").split(".")[0] != "unweave":
        return
    parameters = inspect.signature(function).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        assert set(keywords) <= set(parameters), f"{function.__name__}: no argument {set(keywords) - set(parameters)}"
