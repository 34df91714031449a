"""Deprecated module paths: importing one returns the module that replaces it, with a DeprecationWarning."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

OLD_PATHS = {
    "unweave.build": "unweave.training.build",
    "unweave.cohort": "unweave.training.cohort",
    "unweave.compare": "unweave.evaluation.compare",
    "unweave.encoding": "unweave.evaluation.codes",
    "unweave.evaluate": "unweave.evaluation.evaluate",
    "unweave.estimator": "unweave.integrations.sklearn",
    "unweave.evidence": "unweave.evaluation.likelihood",
    "unweave.export": "unweave.integrations.export",
    "unweave.fleet": "unweave.training.sweep",
    "unweave.groups": "unweave.evaluation.groups",
    "unweave.methods.few_labels": "unweave.methods.semi_supervised",
    "unweave.metrics.aggregate": "unweave.metrics.aggregate_posterior",
    "unweave.metrics.votes": "unweave.metrics.fixed_factor",
    "unweave.prior_fit": "unweave.evaluation.prior_match",
    "unweave.report.agreement": "unweave.report.charts.agreement",
    "unweave.settings": "unweave.config",
    "unweave.trained": "unweave.model",
}
# module -> {old name: new name}
OLD_NAMES = {
    "unweave.evaluation.evaluate": {"score_file": "evaluate_npz"},
    "unweave.evaluation.groups": {"content_leak": "content_leakage"},
    "unweave.evaluation.likelihood": {"evidence_nll": "marginal_nll"},
    "unweave.evaluation.prior_match": {"prior_fit": "aggregate_posterior_metrics"},
    "unweave.report.charts.agreement": {"agreement_picture": "agreement_png"},
}


class Package(ModuleType):
    """The package, in which an old module path such as unweave.evaluate does not replace the function of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self.__all__):
            super().__setattr__(name, value)


class OldPathFinder(MetaPathFinder):
    """Resolve the module paths in `OLD_PATHS`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, _OldPathLoader(OLD_PATHS[fullname])) if fullname in OLD_PATHS else None

    @classmethod
    def install(cls) -> None:
        """Add the finder before those that search for files, so that a leftover file of an old path is ignored."""
        sys.meta_path.insert(0, cls())
        sys.modules["unweave"].__class__ = Package


class _OldPathLoader(Loader):
    def __init__(self, new: str) -> None:
        self.new = new

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        _warn(f"{spec.name} is deprecated; use {self.new}")
        module = import_module(self.new)
        self.spec = module.__spec__  # the import system replaces it by the spec of the old path
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
        for old, new in OLD_NAMES.get(self.new, {}).items():
            setattr(module, old, getattr(module, new))


def _warn(text: str) -> None:
    """Warn at the line outside this package and the import system that uses the old path."""
    frame = sys._getframe()
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] in (
        "unweave",
        "importlib",
        "_frozen_importlib",
    ):
        frame = frame.f_back
    place = (frame.f_code.co_filename, frame.f_lineno, frame.f_globals["__name__"])
    warnings.warn_explicit(text, DeprecationWarning, *place)
