"""The command `unweave train`. Its options are the fields of `RunConfig`, and those below that are about files."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import bold, out_console, shell_quote
from unweave.cli.data import (
    ChannelsOption,
    FactorsOption,
    FitOption,
    GroupsOption,
    PairsOption,
    SizeOption,
    open_data,
    print_label_notes,
    supervision_from_files,
)
from unweave.config import OPTIONS, option_flag, train_parameters
from unweave.config.run_config import ALIASES
from unweave.errors import check_choice, invalid

RESUME_OPTIONS = ("resume", "data", "factors", "device", "steps", "strategy", "quiet")


def train(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="name of a method; see: unweave list methods")] = "",
    data: Annotated[str, typer.Option(help="sprites, 'rooms(size=32)', a folder or .npz; see: data list")] = "sprites",
    factors: FactorsOption = None,
    groups: GroupsOption = None,
    pairs: PairsOption = None,
    size: SizeOption = None,
    fit: FitOption = None,
    channels: ChannelsOption = None,
    set: Annotated[
        list[str] | None, typer.Option(help="a setting of the method, beta=6, or several values, beta=1,2,4")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="seeds of many runs that train together: 0-9 or 0,3,5")] = None,
    out: Annotated[Path | None, typer.Option(help="run folder to create")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="interrupted run, or folder of runs, to continue; with --steps, to extend")
    ] = None,
    strategy: Annotated[str, typer.Option(help="execution of many runs: auto, loop or batched")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress display")] = False,
    **options: Any,
) -> None:
    """Train METHOD on a data set into a run folder; with several values or seeds, all runs together."""
    from unweave.engine.replicas import STRATEGIES

    check_choice("strategy", strategy, ("auto", *STRATEGIES))
    if resume is not None:
        _resume(context, resume, Path(data), factors, options, strategy, quiet)
        return
    from unweave.cli.progress import progress_observer
    from unweave.cli.sweep import read_seeds, split_values, sweep
    from unweave.data import parse_supervision
    from unweave.training.build import find_method
    from unweave.training.train import train as start

    if not method:
        raise invalid("method", method, "the name of a method", hint="see: unweave list methods")
    for name in method.split(","):
        find_method(name.strip())  # before a folder is read, which may take long
    options["supervision"] = supervision_from_files(options["supervision"], pairs, groups)
    pairs_text = options["supervision"] if pairs and options["supervision"] else ""
    own = dict(factors=factors, groups=groups, size=size, fit=fit, channels=channels)
    dataset = open_data(data, quiet, pairs_text, **own)
    if options["supervision"] is not None:
        options["supervision"] = parse_supervision(options["supervision"], dataset)
        print_label_notes(options["supervision"], dataset, quiet)
    settings = _settings(set or [])
    if seeds is not None or "," in method or any(len(split_values(value)) > 1 for value in settings.values()):
        many = read_seeds(seeds) if seeds is not None else [options["seed"]]
        rest = {name: value for name, value in options.items() if name != "seed"}
        sweep(method, dataset, settings, many, rest, out=out, strategy=strategy, quiet=quiet)
        return
    with progress_observer(quiet) as observe:
        trained = start(method, dataset, out=out, observe=observe, **options, **settings)
    _finish(trained)


def _resume(
    context: typer.Context,
    path: Path,
    data: Path,
    factors: Path | None,
    options: dict[str, Any],
    strategy: str,
    quiet: bool,
) -> None:
    from unweave.cli.progress import progress_observer, same_command_resumes
    from unweave.cli.sweep import resume_sweep
    from unweave.model import relocated_data
    from unweave.training.train import resume

    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    if other := [name for name in given if name not in RESUME_OPTIONS]:
        value = context.params[other[0]]
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        raise invalid(other[0], shown, "left out with --resume", hint="a run keeps its own configuration")
    device = None if options["device"] == "auto" else options["device"]
    steps = options["steps"] if "steps" in given else None
    moved = [name for name in ("data", "factors") if name in given]
    if path.is_dir() and not (path / "config.json").exists():
        if moved:
            raise invalid(moved[0], str(context.params[moved[0]]), f"left out: '{path}' is a folder of runs")
        resume_sweep(path, strategy=strategy, device=device, steps=steps, quiet=quiet)
        return
    dataset = relocated_data(path, data if "data" in moved else None, factors)
    with same_command_resumes(), progress_observer(quiet) as observe:
        trained = resume(path, data=dataset, device=device, steps=steps, observe=observe)
    _finish(trained)


def _finish(trained: Any) -> None:
    """Save sample images and print the commands to run next."""
    from unweave.report import save_samples

    path = trained.folder.path
    save_samples(trained)
    if trained.representation.encode is None:
        out_console.print(bold(path) + " is trained.")
        return
    out_console.print(bold(path) + " is trained. Next:")
    quoted = shell_quote(path)
    out_console.print(f"  unweave evaluate {quoted}\n  unweave report {quoted} -o report.html")
    if trained.representation.classify is not None:
        out_console.print(f"  unweave predict {quoted} -o predicted.csv")


def _settings(pairs: list[str]) -> dict[str, Any]:
    """Parse ["beta=6"] to {"beta": "6"}."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not name or not value:
            raise invalid("set", pair, "name=value, such as --set beta=6")
        if (option := ALIASES.get(name, name)) in {*OPTIONS, "out", "observe", "data", "method"}:
            raise invalid("set", pair, "a setting of the method", hint=f"use the option {option_flag(option)} {value}")
        settings[name] = value
    return settings


def _signature() -> inspect.Signature:
    """Return the signature of `train` with the options of `RunConfig` as parameters for typer."""
    own = list(inspect.signature(train, eval_str=True).parameters.values())[:-1]
    declared = []
    for parameter in train_parameters(command_line=True):
        info = typer.Option(option_flag(parameter.name), help=OPTIONS[parameter.name].help)
        declared.append(parameter.replace(annotation=Annotated[parameter.annotation, info]))
    return inspect.Signature([*own, *declared])


train.__signature__ = _signature()  # type: ignore[attr-defined]
