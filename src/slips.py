"""Hydra's words for a slip on the command line, turned into one message of this project's form.

Called by run.py with what Hydra printed before it gave up. Never composes or runs anything.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any

from .errors import nearest
from .schema import GROUPS, Config, dataclass_in

_FULL_ERROR = "HYDRA_FULL_ERROR"
HELP = "See python -m src.run --help."
_TAKE_A_WORD = ("-c", "--cfg", "-p", "--package", "-i", "--info", "-sc", "--shell-completion")
_PLAIN = {
    int: ("a whole number", "3"),
    float: ("a number", "1.5"),
    bool: ("true or false", "true"),
    str: ("text", "<text>"),
}


def flags_last(words: Sequence[str]) -> list[str]:
    """The same command line in an order that argparse takes: no flag between two overrides."""
    flags: list[str] = []
    overrides: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        belongs = before in _TAKE_A_WORD and "=" not in word
        (flags if belongs or _is_flag(word) else overrides).append(word)
    return overrides + flags


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"


def explain(printed: str, typed: Sequence[str]) -> str:
    """Say what was typed, what is allowed and what to type instead.

    `printed` is Hydra's stderr; `typed` the command line without the program.
    """
    for pattern, answer in _ANSWERS:
        match = re.search(pattern, printed, re.DOTALL)
        if match:
            return answer(match, typed)
    for word in typed:
        key = word.partition("=")[0].lstrip("+~")
        if key.partition(".")[0] in GROUPS and not _exists(key):
            return unknown_key(key)
    lines = [
        line for line in printed.strip().splitlines() if line and "HYDRA_FULL_ERROR" not in line
    ]
    last = lines[-1] if lines else "Hydra gave no reason"
    return f"{' '.join(typed)}: {last}. {HELP}"


def _exists(key: str) -> bool:
    """Does the schema have this dotted key? What lies below an open mapping is not known here."""
    node: type | None = Config
    for part in key.split("."):
        if node is None:
            return False
        hint = typing.get_type_hints(node).get(part)
        if hint is None or hint is Any:
            return hint is not None
        node = dataclass_in(hint)
    return True


def _unknown_option(match: re.Match[str], typed: Sequence[str]) -> str:
    group, option = match["group"], match["option"]
    options = match["options"].split()
    pick = nearest(option, options) or options[0]
    return (
        f"{group}={option}: no such option. {group} is one of {', '.join(options)}. "
        f"Type {group}={pick}."
    )


def _unknown_group(match: re.Match[str], typed: Sequence[str]) -> str:
    return f"{match['what']}: no such group. The groups are {', '.join(GROUPS)}, study. {HELP}"


def _unknown_key(match: re.Match[str], typed: Sequence[str]) -> str:
    return unknown_key(match["key"].lstrip("+~"))


def unknown_key(key: str) -> str:
    """The message for a dotted key that the schema does not have."""
    *parents, last = key.split(".")
    if key == "profiler.profile_output_dir":
        return (
            f"{key}: this tool sets it, to the run directory's profile/. Type "
            "tracking.root=<folder> to choose where run directories are."
        )
    node: Any = Config
    path: list[str] = []
    for parent in parents:
        inner = dataclass_in(typing.get_type_hints(node).get(parent))
        if inner is None:
            last = parent
            break
        node, path = inner, [*path, parent]
    names = [field.name for field in dataclasses.fields(node)]
    if not path:
        names.append("study")
        if key == "study":
            return f"study: no such option. {HELP}"
    where = ".".join(path)
    dotted = [f"{where}.{name}" if where else name for name in names]
    match = nearest(last, names)
    hint = f" Did you mean {dotted[names.index(match)]}=...?" if match else f" {HELP}"
    return f"{key}: no such key. {where or 'The configuration'} has {', '.join(names)}.{hint}"


def _wrong_type(match: re.Match[str], typed: Sequence[str]) -> str:
    override = match["override"].lstrip("+")
    key = override.partition("=")[0]
    wanted, example = _wanted(key)
    reason = match["reason"].strip().rstrip(".")
    return f"{override}: {reason}. {key} is {wanted}. Type {key}={example}."


def _wanted(key: str) -> tuple[str, str]:
    """What the schema wants for a dotted key, in words, and an example."""
    node: Any = Config
    for part in key.split("."):
        hint = typing.get_type_hints(node).get(part) if dataclasses.is_dataclass(node) else None
        node = dataclass_in(hint) or hint
    if key == "profiler.modes":
        return "a list of modes", "[DEVICE,RUNTIME]"
    if key == "cores":
        return "a core list such as 0, 0-3 or 0,2-5", "0"
    if dataclasses.is_dataclass(node):
        return "a group", "<option>"
    options = typing.get_args(node) or (node,)
    plain = (_PLAIN[option] for option in options if option in _PLAIN)
    return next(plain, ("another type", "<value>"))


def _ambiguous(match: re.Match[str], typed: Sequence[str]) -> str:
    override = match["override"]
    key, _, value = override.partition("=")
    if key == "cores" or key.endswith("capture_cores"):
        instead = f"\"{key}='{value}'\" for one run that takes them all"
    elif key == "input.shape":
        instead = f"{key}={value.replace(',', 'x')} for one shape"
    else:
        instead = f"{key}=[{value}] for a list"
    return (
        f"{override}: to Hydra a comma means a sweep, which needs -m. Type {instead}, or "
        f"-m {override} for one run of each."
    )


def _unreadable(match: re.Match[str], typed: Sequence[str]) -> str:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    for argument in (word for word in typed if not word.startswith("-")):
        try:
            OverridesParser.create().parse_override(argument)
        except HydraException as error:
            reason = str(error).splitlines()[0]
            if reason.startswith("LexerNoViableAlt"):  # says nothing more than the override
                reason = "it has a letter that needs quotes"
            return (
                f"{argument}: cannot be read ({reason}). An override is key=value; quote a value "
                f"that holds = [ ] {{ }}, commas or letters outside ASCII: "
                f"\"{argument.partition('=')[0]}='...'\". {HELP}"
            )
    return f"{' '.join(typed)}: cannot be read ({match[0]}). {HELP}"


def _unknown_flag(match: re.Match[str], typed: Sequence[str]) -> str:
    return (
        f"{match['flags'].strip()}: no such flag. Settings are key=value without dashes; the flags "
        "are --help, --cfg job, -m (sweep). " + HELP
    )


def _not_an_option(match: re.Match[str], typed: Sequence[str]) -> str:
    found = [word for word in typed if word.partition("=")[0].lstrip("+~") in (*GROUPS, "study")]
    return (
        f"{' '.join(found) or ' '.join(typed)}: a group takes the name of one of its options "
        f"({match['what'].strip().rstrip('.')}). {HELP}"
    )


Answer = Callable[[re.Match[str], Sequence[str]], str]
_ANSWERS: list[tuple[str, Answer]] = [
    (
        (
            r"Could not find '(?P<group>[\w/]+)/(?P<option>[^']*)'\s+"
            r"Available options in '[^']*':\n(?P<options>(?:\t\S+\n)+)"
        ),
        _unknown_option,
    ),
    (r"Could not (?:find|load) '(?P<what>[^']*)'", _unknown_group),
    (r"Could not override '(?P<what>[^'.]*)'\.\s+No match in the defaults list", _unknown_group),
    (r"Could not (?:override|append|delete)[^']*'(?P<key>[^']*)'", _unknown_key),
    (r"Key '(?P<last>[^']*)' (?:is )?not in .*?full_key: (?P<key>\S+)", _unknown_key),
    (r"Error merging override (?P<override>[^\n]*)\n(?P<reason>[^\n]*)", _wrong_type),
    (r"Ambiguous value for argument '(?P<override>[^\n]*)'\n", _ambiguous),
    (
        (
            r"mismatched input|no viable alternative|token recognition error|extraneous input|"
            r"missing EQUAL|Error parsing override|LexerNoViableAlt"
        ),
        _unreadable,
    ),
    (r"error: unrecognized arguments: (?P<flags>[^\n]*)", _unknown_flag),
    (r"error: (?P<flags>argument [^\n]*|ambiguous option[^\n]*)", _unknown_flag),
    (r"ValueError: (?P<what>Config group override must be[^\n]*)", _not_an_option),
]
