"""Check that this environment has exactly the lowest versions that pyproject.toml states, and the oldest Python.

A resolver takes a higher version where the lowest one does not go with the others: then the stated one does not work.
Usage: python .ci/check_floors.py GROUP..., in an environment with surecut and `packaging`; optional dependencies are
all checked, dependency groups only those named.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version


def floor(specifiers: SpecifierSet) -> Version:
    """The lowest version that is stated; every requirement has to state one."""
    (lowest,) = (Version(one.version) for one in specifiers if one.operator == ">=")
    return lowest


def differences(groups: list[str]) -> list[str]:
    """Where this environment is not at the lowest versions."""
    stated = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))
    project = stated["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    lists += [stated["dependency-groups"][group] for group in groups]
    found = []
    oldest, running = floor(SpecifierSet(project["requires-python"])), Version("{}.{}".format(*sys.version_info))
    if running != oldest:
        found.append(f"python: {oldest} is stated, this is {running}")
    for requirement in {Requirement(one) for listed in lists for one in listed}:
        lowest, installed = floor(requirement.specifier), Version(version(requirement.name))
        if lowest != installed:
            found.append(f"{requirement.name}: {lowest} is stated, {installed} is installed")
    return sorted(found)


if __name__ == "__main__":
    sys.exit("\n".join(differences(sys.argv[1:])) or None)
