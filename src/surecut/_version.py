"""The version of the package, for its documents too."""

__version__ = "0.1.0.dev0"
