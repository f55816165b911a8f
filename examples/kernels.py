"""Kernels: curved boundaries at the price of a linear fit.

What one learns here:
- `SVC` maps rows to a few features that approximate the kernel (Nyström), and solves the linear problem there, with a
  certificate for it;
- how many features it takes: a smooth boundary needs few, a jagged one many;
- time and accuracy beside scikit-learn's `SVC`, exact, in a time that grows with the square of the rows.

Run: python examples/kernels.py [--quick] [--out FOLDER]
"""

import time

import numpy as np
import sklearn.svm
from common import BLUE, GREY, ORANGE, options, panels, save, seconds
from data import forest
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from primalsvm import SVC, LinearSVC

args = options(__doc__)

# ---- A smooth boundary: two moons in the plane, with much noise ------------------------------------------------------

m = 4_000 if args.quick else 30_000
moons, side = make_moons(m, noise=0.3, random_state=0)
moons_test, side_test = make_moons(5_000, noise=0.3, random_state=1)
fits = {
    "SVC, 4 features": SVC(gamma=2.0, n_components=4, random_state=0),
    "SVC, 64 features": SVC(gamma=2.0, n_components=64, random_state=0),
    "scikit-learn's SVC": sklearn.svm.SVC(gamma=2.0),
}
print(f"\nTwo moons, {m:,} rows:              fit         right    proven to be within")
for name, model in fits.items():
    taken = seconds(lambda model=model: model.fit(moons, side))
    proof = f"{model.certificate_.relative_gap:.2%} of the best on these features" if isinstance(model, SVC) else ""
    print(f"  {name:24} {taken:12.2f} s {model.score(moons_test, side_test):11.1%}    {proof}")

# ---- A jagged one: where do lodgepole pines grow? --------------------------------------------------------------------

print()
X, y = forest(args.quick)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
print(f"{len(X):,} rows, {X.shape[1]} features, scaled:   fit      predict       right")


def tried(name: str, model) -> tuple[float, float]:
    """Seconds of the fit, and accuracy."""
    machine = make_pipeline(StandardScaler(), model)
    start = time.perf_counter()
    machine.fit(X, y)
    middle = time.perf_counter()
    right = machine.score(X_test, y_test)
    end = time.perf_counter()
    print(f"  {name:24} {middle - start:12.2f} s {end - middle:10.2f} s {right:11.1%}")
    return middle - start, right


linear = tried("LinearSVC", LinearSVC(random_state=0))
features = [8, 32, 128] if args.quick else [8, 32, 128, 512]
curve = np.array([tried(f"SVC, {n} features", SVC(gamma=0.1, n_components=n, random_state=0)) for n in features])
exact = tried("scikit-learn's SVC", sklearn.svm.SVC(gamma=0.1))
print("An approximation pays where there are many rows for the features that it takes, and at every prediction.")

figure, (left, right, last) = panels(3, width=4.6, height=4.2)
shown = slice(0, 1_000)
left.scatter(*moons[shown].T, c=np.where(side[shown] == 1, ORANGE, BLUE), s=5, alpha=0.5)
grid = np.stack(np.meshgrid(np.linspace(-2.2, 3.2, 120), np.linspace(-1.8, 2.3, 120)), axis=-1)
for (name, model), colour, line in zip(fits.items(), (GREY, "black", "#009e73"), (":", "-", "--"), strict=True):
    scores = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    left.contour(grid[..., 0], grid[..., 1], scores, levels=[0.0], colors=[colour], linestyles=[line])
    left.plot([], [], color=colour, linestyle=line, label=name)
left.set(xlabel="first coordinate", ylabel="second coordinate", title=f"smooth: two moons ({m:,} rows)")
left.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=9)
for axes, column, label in ((right, 1, "right on test rows (%)"), (last, 0, "seconds to fit")):
    scale = 100 if column == 1 else 1
    axes.plot(features, scale * curve[:, column], color=BLUE, marker="o", label="SVC")
    axes.axhline(scale * exact[column], color=ORANGE, linestyle="--", label="scikit-learn's SVC (exact)")
    axes.axhline(scale * linear[column], color=GREY, linestyle=":", label="LinearSVC")
    axes.set_xscale("log", base=2)
    axes.set_xticks(features, [str(n) for n in features])
    axes.set(xlabel="features", ylabel=label, title=f"jagged ({len(X):,} rows)")
last.set_yscale("log")
right.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=9)
save(figure, args.out, "kernels.png")
