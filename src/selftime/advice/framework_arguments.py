"""Says how to make a fix in a program whose loop is a framework's: by which of its arguments.

Where a framework creates the optimizer or the DataLoader, no line of the user's calls their
constructor. Then the framework has an argument, which it passes on. Where the user's own code
creates them, in a method that the framework calls or before the loop, the fix is made at that line.

The arguments are those of transformers 5.24, Lightning 2.6, skorch 1.4, Stable-Baselines3 2.9,
pytorch-tabnet 4.1, Ultralytics 8.4, fastai 2.8 and Accelerate 1.15, each read in its source.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from selftime.advice.detectors.creation_sites import CreationSite, creation_sites
from selftime.advice.rule_outcomes import Argument, Finding, Fix
from selftime.trace import Trace

_TRANSFORMERS: Final = {
    "num_workers": "TrainingArguments(..., dataloader_num_workers={value})",
    "persistent_workers": "TrainingArguments(..., dataloader_persistent_workers={value})",
    "prefetch_factor": "TrainingArguments(..., dataloader_prefetch_factor={value})",
    "pin_memory": "TrainingArguments(..., dataloader_pin_memory={value})",
    "batch_size": "TrainingArguments(..., per_device_train_batch_size={value})",
    "precision": "TrainingArguments(..., bf16=True)",
    "checkpointing": "TrainingArguments(..., gradient_checkpointing={value})",
    "compile": "TrainingArguments(..., torch_compile={value})",
    "log_interval": "TrainingArguments(..., logging_steps={value})",
    "unused_parameters": "TrainingArguments(..., ddp_find_unused_parameters={value})",
}
_LIGHTNING: Final = {
    "precision": 'Trainer(..., precision="bf16-mixed")',
    "log_interval": "Trainer(..., log_every_n_steps={value})",
    "anomaly": "Trainer(..., detect_anomaly={value})",
    "unused_parameters": 'Trainer(..., strategy="ddp")',
}

ARGUMENT_BY_FRAMEWORK: Final[Mapping[str, Mapping[str, str]]] = {
    "transformers": _TRANSFORMERS,
    "lightning": _LIGHTNING,
    "pytorch_lightning": _LIGHTNING,
    "skorch": {
        "fused": "NeuralNet(..., optimizer__fused={value})",
        "foreach": "NeuralNet(..., optimizer__foreach={value})",
        "num_workers": "NeuralNet(..., iterator_train__num_workers={value})",
        "persistent_workers": "NeuralNet(..., iterator_train__persistent_workers={value})",
        "prefetch_factor": "NeuralNet(..., iterator_train__prefetch_factor={value})",
        "pin_memory": "NeuralNet(..., iterator_train__pin_memory={value})",
        "batch_size": "NeuralNet(..., iterator_train__batch_size={value})",
        "compile": "NeuralNet(..., compile={value})",
    },
    "stable_baselines3": {
        "fused": 'policy_kwargs={{"optimizer_kwargs": {{"fused": {value}}}}}',
        "foreach": 'policy_kwargs={{"optimizer_kwargs": {{"foreach": {value}}}}}',
    },
    "pytorch_tabnet": {
        "fused": 'TabNetClassifier(..., optimizer_params={{"lr": ..., "fused": {value}}})',
        "foreach": 'TabNetClassifier(..., optimizer_params={{"lr": ..., "foreach": {value}}})',
        "num_workers": "model.fit(..., num_workers={value})",
        "pin_memory": "model.fit(..., pin_memory={value})",
        "batch_size": "model.fit(..., batch_size={value})",
    },
    "ultralytics": {
        "num_workers": "model.train(..., workers={value})",
        "batch_size": "model.train(..., batch={value})",
        "precision": 'model.train(..., amp="bf16")',
        "compile": "model.train(..., compile={value})",
    },
    "fastai": {
        "num_workers": "DataLoaders.from_dsets(..., num_workers={value})",
        "pin_memory": "DataLoaders.from_dsets(..., pin_memory={value})",
        "batch_size": "DataLoaders.from_dsets(..., bs={value})",
        "precision": "learner.to_bf16()",
    },
    "accelerate": {"precision": 'Accelerator(mixed_precision="bf16")'},
}
"""For each package of a framework, how the user sets each argument: `{value}` is its value."""

TRANSFORMERS_OPTIMIZERS: Final = {
    ("AdamW", "fused"): 'TrainingArguments(..., optim="adamw_torch_fused")'
}
"""Maps the class of an optimizer and its form to the argument of transformers that chooses it."""

_TITLES: Final = {
    "transformers": "transformers",
    "lightning": "Lightning",
    "pytorch_lightning": "Lightning",
    "skorch": "skorch",
    "stable_baselines3": "Stable-Baselines3",
    "pytorch_tabnet": "pytorch-tabnet",
    "ultralytics": "Ultralytics",
    "fastai": "fastai",
    "accelerate": "Accelerate",
}


def with_framework_argument(trace: Trace, finding: Finding) -> Finding:
    """Returns the finding with a fix that the user can make: by an argument, or at its line.

    Nothing is said of an object that may be one of several.
    """
    argument = finding.fix.argument
    if argument is None:
        return finding
    every = creation_sites(trace)
    sites = [site for site in every if _may_be_of(argument, site)]
    if argument.of == "loop":
        framework = _framework(every, argument, is_called=True)
        return finding if framework is None else _with_argument(finding, argument, framework, "")
    if not sites or any(site.is_direct != sites[0].is_direct for site in sites):
        return finding
    if sites[0].is_direct:
        return _with_line(finding, argument, sites)
    framework = _framework(sites, argument, is_called=False)
    if framework is None:
        return _with_line(finding, argument, sites)
    class_name = sites[0].class_name
    return _with_argument(finding, argument, framework, class_name)


def _may_be_of(argument: Argument, site: CreationSite) -> bool:
    """Returns whether an object that is created at a site may take the argument."""
    if site.kind != argument.of or site.file is None:
        return False
    return argument.class_name is None or site.class_name == argument.class_name


def _framework(
    sites: tuple[CreationSite, ...] | list[CreationSite], argument: Argument, *, is_called: bool
) -> str | None:
    """Returns the package of the framework that takes an argument; None if there is no single one.

    With `is_called` the framework may also call the user's method that creates the object.
    """
    found = {
        package
        for site in sites
        if is_called or not site.is_direct
        for package in _framework_of_site(site, argument)
    }
    return found.pop() if len(found) == 1 else None


def _framework_of_site(site: CreationSite, argument: Argument) -> list[str]:
    """Returns the outermost framework of a site's stack that takes the argument, if any."""
    known = [package for package in site.packages if package in ARGUMENT_BY_FRAMEWORK]
    return [package for package in known[-1:] if _text(package, argument, site.class_name)]


def _text(package: str, argument: Argument, class_name: str) -> str | None:
    if package == "transformers" and argument.name in ("fused", "foreach"):
        return TRANSFORMERS_OPTIMIZERS.get((class_name, argument.name))
    template = ARGUMENT_BY_FRAMEWORK[package].get(argument.name)
    return None if template is None else template.format(value=argument.value)


def _with_argument(finding: Finding, argument: Argument, package: str, class_name: str) -> Finding:
    code = _text(package, argument, class_name)
    if code is None:
        return finding
    text = f"{finding.fix.text} {_TITLES[package]} has an argument for it."
    return replace(finding, fix=Fix(text, code, argument))


def _with_line(finding: Finding, argument: Argument, sites: list[CreationSite]) -> Finding:
    """Returns the finding with the line at which the object is created, if there is one."""
    places = {(site.file, site.line) for site in sites}
    if len(places) > 1 or (finding.where.file, finding.where.line) in places:
        return finding
    what = "The DataLoader" if argument.of == "loader" else sites[0].class_name
    how = "is created" if sites[0].is_direct else "comes from the call"
    text = f"{finding.fix.text} {what} {how} at {sites[0]}."
    return replace(finding, fix=Fix(text, finding.fix.code, argument))
