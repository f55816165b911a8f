"""`primalsvm plan`."""

from typing import Annotated

import typer

from primalsvm.cli.showing import AsJson, sentences, show


def plan(
    lam: Annotated[float, typer.Option(help="λ, the weight of the regularisation.")],
    epsilon: Annotated[float, typer.Option(help="ε: how far P(w) may be above P*.")],
    delta: Annotated[
        float | None, typer.Option(help="δ: it may fail with this probability; else in expectation.")
    ] = None,
    radius: Annotated[float, typer.Option(help="R, the length of the longest row.")] = 1.0,
    projection: Annotated[
        bool, typer.Option("--projection/--no-projection", help="Project onto the ball of radius 1/√λ.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Compute the number of steps of Pegasos that theory requires, which does not depend on the number of rows."""
    with sentences():
        from primalsvm.theory import plan as steps_for

        steps = steps_for(lam, epsilon, delta, radius, projection)
        show({"steps": steps.iterations, "tries": steps.tries, "bound": steps.bound}, as_json)
