"""Choosing C: how strongly to regularise, by cross-validation along paths.

What one learns here:
- `LinearSVCCV` tries many C's in every fold, from strong regularisation to weak, each fit begun where the last ones
  lead to: less work than fitting each afresh, as `GridSearchCV` does;
- `svm_path`: the same path on all rows, with a certificate at every point: errors in the curve are not the solver's;
- afterwards it is a `LinearSVC` with the best C: it predicts, and is saved, as one.

Run: python examples/choosing_c.py [--quick] [--out FOLDER]
"""

import time

import numpy as np
from common import BLUE, GREY, ORANGE, options, panels, save
from data import messages
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import primalsvm

args = options(__doc__)
train, test = messages(args.quick)
words = TfidfVectorizer(sublinear_tf=True, min_df=2)
X, X_test = words.fit_transform(train.text), words.transform(test.text)
# Two classes that are no simple matter: groups whose names begin early in the alphabet, and the others
late = np.sort(train.group.unique())[train.group.nunique() // 2]
y, y_test = (np.where(part.group < late, "first half", "second half") for part in (train, test))
print(f"{X.shape[0]:,} messages, {X.shape[1]:,} words; is a message's group of the first half of the alphabet?")

# ---- Twenty C's, five folds: 100 fits, and one more with the best C on all rows --------------------------------------

Cs = np.geomspace(1e-2, 1e2, 8 if args.quick else 20)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
rivals = {
    "LinearSVCCV": primalsvm.LinearSVCCV(Cs=Cs, cv=folds, random_state=0),
    "GridSearchCV(LinearSVC)": GridSearchCV(primalsvm.LinearSVC(random_state=0), {"C": Cs}, cv=folds),
}
primalsvm.LinearSVCCV(Cs=[0.1, 1.0], cv=2).fit(X, y)  # a first fit on a machine also compiles
primalsvm.LinearSVC().fit(X, y)
print(f"\n{len(Cs)} C's in 5 folds:      time     best C   right in the folds   right on the test messages")
for name, search in rivals.items():
    start = time.perf_counter()
    search.fit(X, y)
    taken = time.perf_counter() - start
    C = search.C_ if name == "LinearSVCCV" else search.best_params_["C"]
    print(f"  {name:24} {taken:5.1f} s {C:8.3g} {search.best_score_:14.2%} {search.score(X_test, y_test):22.2%}")

best = rivals["LinearSVCCV"]
print(f"The chosen one: {best.certificate_}")
print(f"  within {best.certificate_.relative_gap:.2%} of the best fit with C = {best.C_:.3g}; tol asked for 0.10%")
error = 1.0 - best.scores_  # a row for each fold
middle, doubt = error.mean(axis=0), error.std(axis=0) / np.sqrt(len(error))
simplest = Cs[np.argmax(middle <= middle.min() + doubt[middle.argmin()])]
print(f"The smallest C that is as good, up to one standard error of the folds: {simplest:.3g}")

# ---- The path itself: what the model is like at every C --------------------------------------------------------------

path = primalsvm.svm_path(X, y, lams=1.0 / (Cs * len(y)))  # λ = 1/(C m)
gaps = np.array([proof.relative_gap for proof in path.certificates])
print(f"\nThe path on all rows: {len(Cs)} points in {path.seconds.sum():.2f} s, relative gaps up to {gaps.max():.1e}")
signs, signs_test = (np.where(labels == path.classes[1], 1, -1) for labels in (y, y_test))
wrong, wrong_test = (
    [np.mean(sign * (rows @ w + b) <= 0) for w, b in zip(path.coefs, path.intercepts, strict=True)]
    for rows, sign in ((X, signs), (X_test, signs_test))
)

figure, (left, right) = panels(2, width=5.8, height=4.4)
left.fill_between(Cs, 100 * (middle - doubt), 100 * (middle + doubt), color=BLUE, alpha=0.2, linewidth=0)
left.plot(Cs, 100 * middle, color=BLUE, marker="o", markersize=4, label="held-out rows of the folds (± standard error)")
left.plot(Cs, 100 * np.array(wrong_test), color=ORANGE, marker="s", markersize=4, linestyle="--", label="test messages")
left.plot(Cs, 100 * np.array(wrong), color=GREY, marker="^", markersize=4, linestyle=":", label="training rows")
left.axvline(best.C_, ymax=0.6, color="black", linewidth=1, label=f"best: C = {best.C_:.3g}")
left.axvline(simplest, ymax=0.6, color="black", linewidth=1, linestyle=":", label=f"as good: C = {simplest:.3g}")
left.set(xscale="log", xlabel="C", ylabel="wrong (%)", title="too simple on the left, by heart on the right")
left.legend(frameon=False, fontsize=9, loc="upper right")
right.plot(Cs, gaps, color=BLUE, marker="o", markersize=4, label="relative gap, proven")
right.axhline(1e-3, color=GREY, linestyle="--", label="tol")
right.set(
    xscale="log", yscale="log", xlabel="C", ylabel="relative duality gap", title="every point has its certificate"
)
right.legend(frameon=False, loc="lower right")
save(figure, args.out, "choosing_c.png")
