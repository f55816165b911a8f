"""`primalsvm train`."""

import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from primalsvm.cli.models import evaluation_of
from primalsvm.cli.showing import (
    AsJson,
    Based,
    Drop,
    Features,
    Rows,
    Target,
    bytes_of,
    check_writable,
    open_source,
    sentences,
    show,
)

STREAM_BYTES = 1 << 20  # of a stream that are read at a time
LIBRARIES = 300 * 10**6  # bytes that Python and its libraries take; a constant, so that runs are repeatable
LEAST_ROWS = 25 * 10**6  # bytes that rows need at least


def train(
    rows: Rows,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to save the model.")] = None,
    test: Annotated[Path | None, typer.Option(help="Rows to test the model on.")] = None,
    C: Annotated[
        float | None, typer.Option("-C", help="C, as in scikit-learn: λ = 1/(C · rows); 1 without it.")
    ] = None,
    lam: Annotated[float | None, typer.Option(help="λ itself, instead of C.")] = None,
    loss: Annotated[str, typer.Option(help="hinge, squared_hinge, smoothed_hinge or logistic.")] = "hinge",
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-3,
    max_iter: Annotated[
        int | None, typer.Option(help="Maximum number of epochs; without it, the work is limited to a minute or two.")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Maximum number of seconds of solving.")] = None,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Fit an intercept.")] = True,
    balanced: Annotated[bool, typer.Option(help="Weight the classes inversely to their frequencies.")] = False,
    kernel: Annotated[
        str | None, typer.Option(help="rbf, laplacian, chi2 or poly (columns should be scaled); without it, linear.")
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="γ of the kernel; without it, from the data.")] = None,
    components: Annotated[
        int | None, typer.Option(min=1, help="Number of features that approximate the kernel.")
    ] = None,
    target: Target = None,
    drop: Drop = None,
    features: Features = None,
    zero_based: Based = None,
    memory: Annotated[
        str | None, typer.Option(help="How much memory to use, like 500MB; larger files are read in each epoch.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="A file to keep the state of the training in.")] = None,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between two checkpoints.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint, if it exists.")] = False,
    online: Annotated[bool, typer.Option("--online", help="Learn from a stream, visiting each row once.")] = False,
    seed: Annotated[int, typer.Option(help="Makes a run repeatable.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 is all cores.")] = -1,
    as_json: AsJson = False,
) -> None:
    """Train on a file until the model is proven to be accurate, or with --online on a stream."""
    with sentences():
        if kernel is None and (gamma is not None or components is not None):
            raise ValueError("--gamma and --components are for kernels: say which with --kernel")
        if C is not None and lam is not None:
            raise ValueError("-C and --lam say the same in two ways: give one of them")
        if resume and checkpoint is None:
            raise ValueError("--resume needs --checkpoint, the file to go on from")
        if online and lam is None:
            raise ValueError("--online needs --lam: C is relative to a number of rows that a stream does not tell")
        if online and (checkpoint is not None or memory is not None):
            raise ValueError("--online keeps no rows: it has neither --checkpoint nor --memory")
        for place in (output, checkpoint):
            check_writable(place)
        if test is not None and not test.exists():
            raise FileNotFoundError(f"there is no file {str(test)!r}")
        source = open_source(rows, features, zero_based, target, drop)
        if online and kernel is not None and not source.width_known:
            raise ValueError("--online with a kernel needs --features: a stream of text does not tell it in advance")
        begin = time.perf_counter()
        module = f"primalsvm.estimators.{'linear_svc' if kernel is None else 'svc'}"
        # Importing scikit-learn takes a second on one core.
        importing = threading.Thread(target=import_module, args=(module,))
        importing.start()
        early = None if online or memory is not None else _read_early(source)
        importing.join()
        read = time.perf_counter()
        parameters: dict[str, Any] = {
            "C": 1.0 if C is None else C, "lam": lam, "loss": loss, "tol": tol, "max_iter": max_iter,
            "max_seconds": max_seconds, "fit_intercept": intercept, "class_weight": "balanced" if balanced else None,
            "random_state": seed, "n_jobs": jobs, "verbose": int(sys.stderr.isatty() and not online),
        }  # fmt: skip
        if memory is not None:
            parameters["memory"] = _for_rows(memory)
        if checkpoint is not None:
            from primalsvm.checkpoints import Checkpoint

            parameters["checkpoint"] = Checkpoint(checkpoint, every, resume)
            if resume and not checkpoint.exists():
                typer.echo(f"primalsvm: there is no {checkpoint} yet; beginning anew", err=True)
        model = _model(parameters, kernel, gamma, components, online)
        if online:
            from primalsvm.cli.online import learn

            facts = learn(model, source, STREAM_BYTES)
        else:
            facts = _fit(model, early or source)
            facts["seconds_reading"] = round(read - begin, 3) if early else 0.0
        facts["seconds_fitting"] = round(time.perf_counter() - read, 3)
        if output is not None:
            model.save(output)
            facts["model"] = str(output)
        if test is not None:
            facts |= evaluation_of(model, test, target)
        show(facts, as_json)
        status = getattr(model, "status_", None)
        if status is not None and status.value == "interrupted":
            if checkpoint is not None:
                typer.echo(f"primalsvm: go on with --checkpoint {checkpoint} --resume", err=True)
            raise typer.Exit(130)


def _read_early(source: Any) -> Any:
    """The rows of a source in memory; None if they do not fit there, or are mapped."""
    from primalsvm.memory import available

    if source.mapped or source.memory_needed() > 0.5 * available():
        return None
    return source.load()


def _for_rows(limit: str) -> float:
    """The bytes for rows within a limit on all memory: half, as a fit needs other arrays as well."""
    left = 0.5 * (bytes_of(limit) - LIBRARIES)
    if left < LEAST_ROWS:
        least = (LIBRARIES + 2 * LEAST_ROWS) / 1e6
        raise ValueError(f"--memory {limit} is too little: Python, its libraries and some rows need {least:.0f}MB")
    return left


def _model(
    parameters: dict[str, Any], kernel: str | None, gamma: float | None, components: int | None, online: bool
) -> Any:
    if kernel is None:
        from primalsvm.estimators.linear_svc import LinearSVC

        return LinearSVC(**parameters)
    from primalsvm.estimators.svc import SVC

    chosen = "scale" if gamma is None else gamma
    approximation = "fourier" if online and kernel in ("rbf", "laplacian") else "nystroem"
    return SVC(kernel=kernel, gamma=chosen, n_components=components, approximation=approximation, **parameters)


def _fit(model: Any, source: Any) -> dict[str, Any]:
    """Fit a model, and return a report."""
    import warnings

    import numpy as np

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(source)
    for warning in caught:
        typer.echo(f"primalsvm: {warning.message}", err=True)
    certificate = model.certificate_
    return {
        "rows": model.n_samples_fit_,
        "features": model.n_features_in_,
        "solver": type(model.solver_).__name__,
        "epochs": int(np.max(model.n_iter_)),
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "status": model.status_.value,
    }
