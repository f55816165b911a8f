"""Tests of the experiments, which are scripts and no package."""

import importlib.util
from pathlib import Path
from types import ModuleType


def load_experiment(name: str) -> ModuleType:
    """The module of an experiment."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "experiments" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
