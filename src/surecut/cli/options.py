"""Messages of the library in the words of the command line: a keyword becomes the option that sets it."""

from __future__ import annotations

import ast
import re

OPTIONS = {
    "metric": "--metric",
    "k": "--top-k",
    "row": "--row",
    "by": "--by",
    "average": "--average",
    "sample_weight": "--weight",
    "weight": "--weight",
    "weights": "--weights",
    "groups": "--groups",
    "pos_label": "--pos-label",
    "constraint": "--constraint",
    "upper": "--upper",
    "lower": "--lower",
    "conditions": "--condition",
    "gains": "--gain",
    "zones": "--zones",
    "confidence": "--confidence",
    "prior": "--prior",
    "shrinkage": "--shrinkage",
    "stable": "--stable",
    "missing": "--missing",
    "unknown": "--unknown",
    "method": "--method",
    "held_out": "--held-out",
    "looks": "--looks",
    "reference": "--reference",
    "resamples": "--resamples",
    "costs": "--costs",
    "reject_cost": "--reject-cost",
    "random_state": "--random-state",
}
"""The option of each keyword that a message may name, as ``keyword=``, ``keyword='value'`` or ``keyword=number``."""

FLAGS = {
    "held_out=True": "--held-out",
    "held_out=False": "--not-held-out",
    "stable=True": "--stable",
}
"""Keywords whose values are options of their own."""

KEYWORD = re.compile(rf"(?<![\w.])({'|'.join(OPTIONS)})=(?:'([^']*)'|\"([^\"]*)\"|([\w.]*\w))?")


def in_options(message: str) -> str:
    """A message of the library, with the options of the commands for the keywords of the functions.

    >>> in_options("pass weights='counts', or use certify(method='bootstrap'); if they are, held_out=True")
    'pass --weights counts, or use surecut certify --method bootstrap; if they are, --held-out'
    >>> in_options("conditions such as upper='ppv>=0.9', or gains such as gains={'no': (0, -10), 'yes': (-1, 1)}")
    'conditions such as --upper "ppv>=0.9", or gains such as --gain "no: 0, -10" --gain "yes: -1, 1"'
    """
    message = re.sub(r"\bcertify\((method='\w+')\)", r"surecut certify \1", message)
    message = re.sub(r"\bcertify\(cut, \.\.\.\)", "surecut certify", message)
    message = re.sub(r"pass a list, constraint=\[(.*)\]", _repeated, message)
    message = re.sub(r"pass a list, \[(.*)\]", r"repeat the option: \1", message)
    message = re.sub(r"\b(gains|conditions)=(\{.*?\})", _each_zone, message)
    message = message.replace("leave stable=False", "leave out --stable")
    for flag, option in FLAGS.items():
        message = message.replace(flag, option)

    def spelled(found: re.Match[str]) -> str:
        value = next((one for one in found.groups()[1:] if one is not None), None)
        if value is None:
            return OPTIONS[found[1]]
        return f"{OPTIONS[found[1]]} {_for_a_shell(value)}"

    return KEYWORD.sub(spelled, message)


def _repeated(found: re.Match[str]) -> str:
    """The constraints of a list, each with an option of its own."""
    return "repeat --constraint: " + " ".join(f"--constraint {one}" for one in re.findall(r"'[^']*'", found[1]))


def _each_zone(found: re.Match[str]) -> str:
    """The gains or conditions of zones, each with an option of its own."""
    try:
        of_zones = ast.literal_eval(found[2])
    except (SyntaxError, ValueError):  # a zone may be called anything
        return found[0]
    values = {zone: value if isinstance(value, str) else str(value).strip("()") for zone, value in of_zones.items()}
    return " ".join(f'{OPTIONS[found[1]]} "{zone}: {value}"' for zone, value in values.items())


def _for_a_shell(value: str) -> str:
    """A value in quotes, where a shell would take a part of it for the name of a file."""
    return f'"{value}"' if re.search("[<>]", value) else value
