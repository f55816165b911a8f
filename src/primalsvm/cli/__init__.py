"""The command line. Heavy parts are imported inside the commands, so that ``primalsvm --help`` is quick.

Results go to standard output, as a table or with --json as one object; progress and errors go to standard error. Exit
codes: 0; 1 for what the user can mend, with one sentence; 130 for Ctrl-C.
"""

import os
import sys

import typer

import primalsvm
from primalsvm.cli.demo import demo
from primalsvm.cli.files import convert, inspect
from primalsvm.cli.models import evaluate, predict
from primalsvm.cli.planning import plan
from primalsvm.cli.training import train

WRONG_CALL = 2  # typer's exit code for options that it does not know

app = typer.Typer(help="Support vector machines with a proof of accuracy.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(primalsvm.__version__)


TRAIN = """\b
Examples:
  primalsvm train docs.svm.gz -o model.safetensors --lam 1e-5 --test held.svm
  primalsvm train people.csv --target income --drop id --kernel rbf --components 512
  primalsvm train huge.cache --lam 1e-6 --memory 2GB --checkpoint run.ckpt --resume
  cat docs.svm | primalsvm train - --online --lam 1e-5 -o model.safetensors
"""
CONVERT = """\b
Examples:
  primalsvm convert docs.svm.gz docs.cache
  primalsvm convert people.parquet people.cache --target income
"""
PREDICT = """\b
Examples:
  primalsvm predict model.safetensors new.svm -o scores.csv
  zcat new.svm.gz | primalsvm predict model.safetensors - | head
"""
EVALUATE = """\b
Example:
  primalsvm evaluate model.safetensors held.svm --json
"""
INSPECT = """\b
Example:
  primalsvm inspect docs.svm
"""

PLAN = """\b
Example:
  primalsvm plan --lam 1e-4 --epsilon 0.01 --delta 0.05
"""

app.command(epilog=TRAIN)(train)
app.command(epilog=PREDICT)(predict)
app.command(epilog=EVALUATE)(evaluate)
app.command(epilog=CONVERT)(convert)
app.command(epilog=INSPECT)(inspect)
app.command(epilog=PLAN)(plan)
app.command()(demo)


def main() -> None:
    """What the script `primalsvm` runs."""
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
    # Python would now take down every module and free every array, half a second after a large fit; the system does
    # it at once. All files are closed.
    os._exit(code)
