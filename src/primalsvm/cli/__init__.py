"""The command line. Other modules are imported inside the commands, so that ``primalsvm --help`` is fast.

Results are written to standard output, as a table or with --json as one object; progress and errors to standard error.
Exit codes: 0 for success, 1 for an error with one sentence, 130 for Ctrl-C.
"""

import os
import sys
from collections.abc import Callable

import typer

import primalsvm
from primalsvm.cli.demo import demo
from primalsvm.cli.files import convert, inspect
from primalsvm.cli.models import evaluate, predict
from primalsvm.cli.planning import plan
from primalsvm.cli.training import train

WRONG_CALL = 2  # typer's exit code for unknown options

app = typer.Typer(help="Support vector machines with a proof of accuracy.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(primalsvm.__version__)


EXAMPLES: dict[Callable[..., None], tuple[str, ...]] = {  # of each command
    train: (
        "primalsvm train docs.svm.gz -o model.safetensors --lam 1e-5 --test held.svm",
        "primalsvm train people.csv --target income --drop id --kernel rbf --components 512",
        "primalsvm train huge.cache --lam 1e-6 --memory 2GB --checkpoint run.ckpt --resume",
        "cat docs.svm | primalsvm train - --online --lam 1e-5 -o model.safetensors",
    ),
    predict: (
        "primalsvm predict model.safetensors new.svm -o scores.csv",
        "zcat new.svm.gz | primalsvm predict model.safetensors - | head",
    ),
    evaluate: ("primalsvm evaluate model.safetensors held.svm --json",),
    convert: (
        "primalsvm convert docs.svm.gz docs.cache",
        "primalsvm convert people.parquet people.cache --target income",
    ),
    inspect: ("primalsvm inspect docs.svm",),
    plan: ("primalsvm plan --lam 1e-4 --epsilon 0.01 --delta 0.05",),
    demo: (),
}
for command, lines in EXAMPLES.items():
    title = "Examples:" if len(lines) > 1 else "Example:"
    app.command(epilog="\n  ".join([f"\b\n{title}", *lines]) + "\n" if lines else None)(command)


def main() -> None:
    """Entry point of the script `primalsvm`."""
    code = 0
    try:
        app()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    code = 1 if code == WRONG_CALL else code
    try:
        sys.stdout.flush()
    except OSError as error:
        typer.echo(f"primalsvm: {error.strerror}", err=True)
        code = 1
    sys.stderr.flush()
    # Leave without freeing every module and array, which takes half a second after a large fit. All files are closed.
    os._exit(code)
