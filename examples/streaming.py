"""Streaming: papers come one after the other, over years, and what they are about changes.

What one learns here:
- `partial_fit`: each batch is seen once, in constant memory; `HashingVectorizer` needs no vocabulary beforehand;
- progressive validation: each batch is tested before it is learnt, so that no held-out set is needed;
- drift: a model that stopped learning grows old; one that goes on does not;
- what one pass costs beside a fit with all papers at hand, which has a certificate to compare with.

Run: python examples/streaming.py [--quick] [--out FOLDER]
"""

import time

import numpy as np
from common import BLUE, GREEN, GREY, ORANGE, options, panels, save
from data import papers
from matplotlib.ticker import MaxNLocator
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from primalsvm import LinearSVC, Pegasos

args = options(__doc__)
table = papers(args.quick)
X = HashingVectorizer(n_features=2**18).transform(table.text)  # could be done batch by batch: it has no state
y = np.where(table.computing, "computing", "other")
years = table.year.to_numpy()
m = len(table)
print(f"{m:,} papers, {years[0]:.0f} to {years[-1]:.0f}; of computer science: {np.mean(y == 'computing'):.0%}")

# ---- Four models go through the stream. One stops learning after a fifth of it ---------------------------------------

lam = 1.0 / m  # a stream does not tell how many rows will come: λ is chosen beforehand, C = 1/(λ m) follows
models = {
    "LinearSVC": LinearSVC(lam=lam),  # Pegasos, and the average of its recent steps
    "LinearSVC, last step only": LinearSVC(lam=lam, solver=Pegasos(average="last")),
    "LinearSVC, stopped early": LinearSVC(lam=lam),
    "scikit-learn's SGDClassifier": SGDClassifier(alpha=lam, random_state=0),
}
batches = np.array_split(np.arange(m), 100)
early = len(batches) // 5
wrong = {name: np.full(len(batches), np.nan) for name in models}
spent = dict.fromkeys(models, 0.0)
for number, rows in enumerate(batches):
    for name, model in models.items():
        start = time.perf_counter()
        if number > 0:
            wrong[name][number] = np.mean(model.predict(X[rows]) != y[rows])
        if number < early or "stopped" not in name:
            model.partial_fit(X[rows], y[rows], classes=["computing", "other"])
        spent[name] += time.perf_counter() - start

print("\nWrong, each paper tested before it was learnt:     all   last tenth   time (testing and learning)")
last = slice(len(batches) * 9 // 10, None)
for name, share in wrong.items():
    print(f"  {name:42} {np.nanmean(share):10.1%} {share[last].mean():12.1%} {spent[name]:7.1f} s")
print("An average is steadier, but behind: which is better depends on how fast the world changes.")
online = models["LinearSVC"]
print(f"The estimator keeps count itself: progressive_error_ = {online.progressive_error_:.1%},", end=" ")
print(f"n_samples_seen_ = {online.n_samples_seen_:,}")

# ---- What did it cost to see each paper once only? -------------------------------------------------------------------


def objective(model: LinearSVC) -> float:
    """P(w, b) = λ/2 ‖w‖² + the mean hinge."""
    margins = np.where(y == model.classes_[1], 1.0, -1.0) * model.decision_function(X)
    return lam / 2 * np.sum(model.coef_**2) + np.mean(np.maximum(0.0, 1.0 - margins))


batch = LinearSVC(lam=lam, tol=1e-3, random_state=0).fit(X, y)
proof = batch.certificate_
print(f"\nA stream has no certificate ({online.certificate_}): that takes all rows at hand. With them at hand:")
print(f"  {proof}")
print(f"  P of the stream's model is {objective(online):.3f}, and the best there is lies between", end=" ")
print(f"{proof.dual:.3f} and {proof.primal:.3f}")

figure, (left, right) = panels(2, width=5.8, height=4.2, sharex=True)
when = np.array([years[rows].mean() for rows in batches])
share = np.array([np.mean(y[rows] == "computing") for rows in batches])
smooth = np.ones(5) / 5  # the mean of five batches
for name, colour, line in zip(list(models)[:3], (BLUE, GREEN, ORANGE), ("-", ":", "--"), strict=True):
    curve = np.convolve(wrong[name][1:], smooth, mode="valid")
    left.plot(when[3:-2], 100 * curve, color=colour, linestyle=line, label=name)
left.axvline(when[early], color=GREY, linewidth=1, ymax=0.8, label="here it stopped")
left.set(xlabel="year", ylabel="wrong (%), five batches", title="each paper tested before it is learnt")
left.set_ylim(0, left.get_ylim()[1] * 1.25)
left.legend(frameon=False, loc="upper left", ncols=2)
left.xaxis.set_major_locator(MaxNLocator(integer=True))
right.plot(when, 100 * share, color=BLUE)
right.set(xlabel="year", ylabel="papers of computer science (%)", title="why: the world changes")
save(figure, args.out, "streaming.png")
