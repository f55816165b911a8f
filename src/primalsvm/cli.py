"""The command line. Heavy parts are imported inside the commands, so that ``primalsvm --help`` is quick.

Results go to standard output, as a table or with --json as one object; progress and errors go to standard error. Exit
codes: 0; 1 for what the user can mend, with one sentence; 130 for Ctrl-C.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import primalsvm

T = TypeVar("T")

MANY_LABELS = 20  # above, they are not listed one by one
LOOKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # epochs that the picture shows

Rows = Annotated[Path, typer.Argument(help="svmlight/LIBSVM text (plain, .gz, .bz2, .xz, .zst), or a cache.")]
Fitted = Annotated[Path, typer.Argument(help="A model file that `train` has written.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Features = Annotated[int | None, typer.Option(min=1, help="The number of features, if the file does not show all.")]
Jobs = Annotated[int, typer.Option(help="Threads; -1 is all cores.")]

app = typer.Typer(
    help="Support vector machines with a proof of accuracy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(primalsvm.__version__)


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what the user can mend into one sentence and exit code 1."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        typer.echo(f"primalsvm: {str(error) or type(error).__name__}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("primalsvm: interrupted", err=True)
        raise typer.Exit(130) from None


EXAMPLES = """\b
Examples:
  primalsvm train docs.svm.gz -o model.safetensors --lam 1e-5 --test held.svm
  primalsvm train digits.svm --kernel rbf --gamma 0.01 -C 100 --components 1024
"""


@app.command(epilog=EXAMPLES)
def train(
    rows: Rows,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to save the model.")] = None,
    test: Annotated[Path | None, typer.Option(help="Rows to test the model on.")] = None,
    C: Annotated[float, typer.Option("-C", help="C, as in scikit-learn; λ = 1/(C · rows).")] = 1.0,
    lam: Annotated[float | None, typer.Option(help="λ itself, instead of C.")] = None,
    loss: Annotated[str, typer.Option(help="hinge, squared_hinge, smoothed_hinge or logistic.")] = "hinge",
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-3,
    max_iter: Annotated[int, typer.Option(help="Epochs at most.")] = 1000,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Fit an intercept.")] = True,
    balanced: Annotated[bool, typer.Option(help="Weigh the classes so that they count the same.")] = False,
    kernel: Annotated[str | None, typer.Option(help="rbf, laplacian, chi2 or poly; without it, linear.")] = None,
    gamma: Annotated[float | None, typer.Option(help="γ of the kernel; without it, from the data.")] = None,
    components: Annotated[int | None, typer.Option(min=1, help="Landmarks of the kernel's features.")] = None,
    features: Features = None,
    seed: Annotated[int, typer.Option(help="Makes a run repeatable.")] = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Train on a file until the model is proven to be accurate."""
    with sentences():
        import warnings

        from primalsvm.estimators.linear_svc import LinearSVC
        from primalsvm.estimators.svc import SVC
        from primalsvm.sources.opening import open as open_source

        shared: dict[str, Any] = {
            "C": C, "lam": lam, "loss": loss, "tol": tol, "max_iter": max_iter, "fit_intercept": intercept,
            "class_weight": "balanced" if balanced else None, "random_state": seed, "n_jobs": jobs,
            "verbose": int(sys.stderr.isatty()),
        }  # fmt: skip
        if kernel is None:
            if gamma is not None or components is not None:
                raise ValueError("--gamma and --components are for kernels: say which with --kernel")
            model: Any = LinearSVC(**shared)
        else:
            chosen = "scale" if gamma is None else gamma
            model = SVC(kernel=kernel, gamma=chosen, n_components=components, **shared)
        begin = time.perf_counter()
        options = {} if features is None else {"n_features": features}
        X, y = open_source(rows, **options).to_arrays()
        read = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        fitted = time.perf_counter()
        for warning in caught:
            typer.echo(f"primalsvm: {warning.message}", err=True)
        if output is not None:
            model.save(output)
        certificate = model.certificate_
        facts: dict[str, Any] = {
            "rows": X.shape[0],
            "features": X.shape[1],
            "solver": type(model.solver_).__name__,
            "epochs": model.n_iter_,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "relative_gap": certificate.relative_gap,
            "status": model.status_.value,
            "seconds_reading": round(read - begin, 3),
            "seconds_fitting": round(fitted - read, 3),
        }
        if test is not None:
            facts |= _judged(model, test)
        if output is not None:
            facts["model"] = str(output)
        _show(facts, as_json)


@app.command()
def predict(
    model: Fitted,
    rows: Rows,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A CSV file; without it, print.")] = None,
) -> None:
    """Write the class and the score of every row, as CSV."""
    with sentences():
        import numpy as np

        from primalsvm.estimators.files import load

        clf = load(model)
        X, _ = _rows_for(clf, rows)
        scores = clf.decision_function(X)
        table = zip(clf.classes_[(scores > 0).astype(np.intp)].tolist(), scores.tolist(), strict=True)
        lines = ["class,score", *(f"{label:g},{score!r}" for label, score in table)]
        text = "\n".join(lines) + "\n"
        if output is None:
            typer.echo(text, nl=False)
        else:
            output.write_text(text)


@app.command()
def evaluate(model: Fitted, rows: Rows, as_json: AsJson = False) -> None:
    """Test a model on rows with labels."""
    with sentences():
        from primalsvm.estimators.files import load

        _show(_judged(load(model), rows), as_json)


@app.command()
def convert(rows: Rows, cache: Annotated[Path, typer.Argument(help="The cache to write.")]) -> None:
    """Write svmlight text as a cache, which opens at once and trains at the speed of memory."""
    with sentences():
        from primalsvm.sources.opening import SvmlightFile
        from primalsvm.sources.opening import open as open_source

        source = open_source(rows)
        if not isinstance(source, SvmlightFile):
            raise ValueError(f"{rows} is a cache already")
        source.to_cache(cache)


@app.command()
def inspect(rows: Rows, as_json: AsJson = False) -> None:
    """Say what a file holds."""
    with sentences():
        import numpy as np

        from primalsvm.sources.opening import open as open_source

        X, y = open_source(rows).to_arrays()
        labels, counts = np.unique(y, return_counts=True)
        entries = int(X.nnz) if hasattr(X, "nnz") else int(X.size)
        facts: dict[str, Any] = {"rows": X.shape[0], "features": X.shape[1], "entries": entries}
        if len(labels) <= MANY_LABELS:
            facts["labels"] = {f"{label:g}": int(n) for label, n in zip(labels, counts, strict=True)}
        else:
            facts["labels"] = f"{len(labels)} different, {labels[0]:g} to {labels[-1]:g}"
        _show(facts, as_json)


def _rows_for(model: Any, rows: Path) -> tuple[Any, Any]:
    """Rows with as many features as a model knows."""
    from primalsvm.sources.opening import SvmlightFile
    from primalsvm.sources.opening import open as open_source

    source = open_source(rows)
    if isinstance(source, SvmlightFile):
        source = open_source(rows, n_features=model.n_features_in_)
    return source.to_arrays()


def _judged(model: Any, rows: Path) -> dict[str, Any]:
    import numpy as np

    X, y = _rows_for(model, rows)
    if X.shape[0] == 0:
        raise ValueError(f"{rows} holds no rows")
    return {"test_rows": X.shape[0], "test_error": float(np.mean(model.predict(X) != y))}


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False)
    for name, fact in facts.items():
        if isinstance(fact, dict):
            shown = ", ".join(f"{key}: {value:,}" for key, value in fact.items())
        elif name.endswith("error"):
            shown = f"{fact:.2%}"
        elif name.endswith("gap"):
            shown = f"{fact:.1e}"
        else:
            shown = f"{fact:,}" if isinstance(fact, int) else f"{fact:.6g}" if isinstance(fact, float) else str(fact)
        table.add_row(name.replace("_", " "), shown)
    Console().print(table)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Documents to train on; a tenth more are held out.")] = 800_000,
    lam: Annotated[float, typer.Option(help="λ, the strength of the regularisation.")] = 1e-5,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-3,
    n_jobs: Annotated[int, typer.Option(help="Threads; -1 is all cores.")] = -1,
    output: Annotated[Path, typer.Option(help="Where to save the picture of the convergence.")] = Path("demo.png"),
) -> None:
    """Train on a generated problem of the size of RCV1, and prove how accurate the result is."""
    from rich.console import Console

    from primalsvm.estimators.linear_svc import LinearSVC
    from primalsvm.plots import convergence, save
    from primalsvm.solvers.watched import Watched
    from primalsvm.sources.generated import text_like
    from primalsvm.team import team_size

    console = Console()

    def timed(what: str, work: Callable[[], T]) -> tuple[float, T]:
        with console.status(f"{what} …"):
            begin = time.perf_counter()
            result = work()
            return time.perf_counter() - begin, result

    # A tiny problem of the same dtypes compiles every kernel; from the second run on they come from the disk.
    def compile_kernels() -> None:
        tiny = text_like(m=2000, d=500, per_row=20)
        LinearSVC(lam=1e-2, n_jobs=n_jobs, random_state=0).fit(tiny.X, tiny.y).score(tiny.X_test, tiny.y_test)

    compiling, _ = timed("Compiling the kernels", compile_kernels)
    generating, (X, y, X_test, y_test) = timed(f"Writing {rows:,} documents", lambda: text_like(m=rows, n_jobs=n_jobs))
    model = LinearSVC(lam=lam, tol=tol, n_jobs=n_jobs, random_state=0)
    fitting, _ = timed("Training", lambda: model.fit(X, y))
    predicting, predicted = timed("Predicting", lambda: model.predict(X_test))
    again = LinearSVC(lam=lam, tol=min(tol, 1e-5), n_jobs=n_jobs, random_state=0, solver=Watched(model.solver_, LOOKS))
    timed("Training again, looking more often, for the picture", lambda: again.fit(X, y))
    save(convergence(again.history_), output)

    certificate = model.certificate_
    assert certificate is not None  # certify=True is the default
    console.print(
        _table(
            {
                "Problem": {
                    "training rows × features": f"{X.shape[0]:,} × {X.shape[1]:,}",
                    "non-zeros": f"{X.nnz:,} ({X.nnz / X.shape[0]:.0f} a row)",
                    "λ, tol, threads": f"{lam:g}, {tol:g}, {team_size(n_jobs)}",
                },
                "Seconds": {
                    "compile (cached on disk)": f"{compiling:.2f}",
                    "generate": f"{generating:.2f}",
                    "fit, certificate included": f"[bold]{fitting:.2f}[/] ({model.n_iter_} epochs)",
                    f"predict {X_test.shape[0]:,} rows": f"{predicting:.3f}",
                },
                "Certificate": {
                    "primal P(w)": f"{certificate.primal:.6f}",
                    "dual D(α)": f"{certificate.dual:.6f}",
                    "so P(w) − P* is at most": f"{certificate.gap:.1e}",
                    "relative gap": f"[bold]{certificate.relative_gap:.1e}[/] ({model.status_.value})",
                },
                "Held-out rows": {
                    "error": f"[bold]{(predicted != y_test).mean():.2%}[/]",
                },
            }
        )
    )
    console.print(f"The convergence is drawn in {output}", highlight=False)


def _table(sections: dict[str, dict[str, str]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.ROUNDED, show_header=False, title=f"primalsvm {primalsvm.__version__}", title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    table.add_column(justify="right")
    for section, facts in sections.items():
        for number, (name, fact) in enumerate(facts.items()):
            table.add_row(section if number == 0 else "", name, fact, end_section=number == len(facts) - 1)
    return table
