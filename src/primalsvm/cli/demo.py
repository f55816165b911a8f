"""`primalsvm demo`: solve a generated problem of the size of RCV1, with a certificate."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import primalsvm

T = TypeVar("T")

EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # after which the picture shows an evaluation


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Documents to train on; a tenth more are held out.")] = 800_000,
    lam: Annotated[float, typer.Option(help="λ, the weight of the regularisation.")] = 1e-5,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-3,
    n_jobs: Annotated[int, typer.Option("--jobs", help="Threads; -1 is all cores.")] = -1,
    output: Annotated[Path, typer.Option(help="Where to save the picture of the convergence.")] = Path("demo.png"),
) -> None:
    """Train on a generated problem of the size of RCV1, and prove how accurate the result is."""
    from rich.console import Console

    from primalsvm.data import thread_count
    from primalsvm.estimators.linear_svc import LinearSVC
    from primalsvm.plots import convergence, save
    from primalsvm.solvers.watched import Watched
    from primalsvm.sources.generated import text_like

    console = Console()

    def measure(what: str, work: Callable[[], T]) -> tuple[float, T]:
        with console.status(f"{what} …"):
            begin = time.perf_counter()
            result = work()
            return time.perf_counter() - begin, result

    # A tiny problem of the same dtypes compiles every kernel; later runs load them from the disk.
    def compile_kernels() -> None:
        tiny = text_like(m=2000, d=500, per_row=20)
        LinearSVC(lam=1e-2, n_jobs=n_jobs, random_state=0).fit(tiny.X, tiny.y).score(tiny.X_test, tiny.y_test)

    compiling, _ = measure("Compiling the kernels", compile_kernels)
    generating, (X, y, X_test, y_test) = measure(
        f"Writing {rows:,} documents", lambda: text_like(m=rows, n_jobs=n_jobs)
    )
    model = LinearSVC(lam=lam, tol=tol, n_jobs=n_jobs, random_state=0)
    fitting, _ = measure("Training", lambda: model.fit(X, y))
    predicting, predicted = measure("Predicting", lambda: model.predict(X_test))
    again = LinearSVC(lam=lam, tol=min(tol, 1e-5), n_jobs=n_jobs, random_state=0, solver=Watched(model.solver_, EPOCHS))
    measure("Training again with more evaluations, for the picture", lambda: again.fit(X, y))
    save(convergence(again.history_), output)

    certificate = model.certificate_
    assert certificate is not None  # certify=True is the default
    console.print(
        _table(
            {
                "Problem": {
                    "training rows × features": f"{X.shape[0]:,} × {X.shape[1]:,}",
                    "non-zeros": f"{X.nnz:,} ({X.nnz / X.shape[0]:.0f} a row)",
                    "λ, tol, threads": f"{lam:g}, {tol:g}, {thread_count(n_jobs)}",
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
