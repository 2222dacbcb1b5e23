"""SOPs as YAML: load, check, edit without losing comments, and the built-in ones."""

from beadmill.sops.builtin import NAMES, builtin
from beadmill.sops.load import Sop, checked, kind_specs, load
from beadmill.sops.text import dump, edit

__all__ = ["NAMES", "Sop", "builtin", "checked", "dump", "edit", "kind_specs", "load"]
