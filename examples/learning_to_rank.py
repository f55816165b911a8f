"""Learning to rank: the best documents of a query shall come first.

What one learns here:
- `LinearRanker.fit(X, relevance, qid=…)` learns from pairs: a query's more relevant document shall score higher;
- how good the order is on new queries (NDCG), beside a regression that foretells each relevance by itself;
- that pairs cost little: a billion of them take seconds, and come with a certificate.

Run: python examples/learning_to_rank.py [--quick] [--out FOLDER]
"""

import numpy as np
from common import BLUE, GREY, ORANGE, options, panels, save, seconds
from data import judged_documents
from sklearn.linear_model import Ridge
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from primalsvm import LinearRanker

args = options(__doc__)
train, test = judged_documents(args.quick)
for name, part in (("learn from", train), ("test on", test)):
    print(f"{len(np.unique(part.query))} queries to {name}, {len(part.X):,} documents, relevances 0 … 4")


def ndcg(scores: np.ndarray, relevance: np.ndarray, query: np.ndarray, k: int = 10) -> np.ndarray:
    """NDCG of the first k documents by score, of each query (`LinearRanker.ndcg` is their mean)."""
    rows = [query == one for one in np.unique(query)]
    return np.array([ndcg_score([relevance[at]], [scores[at]], k=k) for at in rows])


# ---- How much regularisation? A quarter of the queries is held out: whole queries, not single documents --------------

split = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=0)
learn, check = next(split.split(train.X, groups=train.query))


def fitted(strength: float, ranks: bool, rows: np.ndarray | slice = slice(None)):
    """A ranker or a regression, on scaled features. What `fit` needs besides X and y is named after the step."""
    model = LinearRanker(C=strength, random_state=0) if ranks else Ridge(alpha=1.0 / strength)
    queries = {"linearranker__qid": train.query[rows]} if ranks else {}
    return make_pipeline(StandardScaler(), model).fit(train.X[rows], train.relevance[rows], **queries)


def best_strength(ranks: bool) -> float:
    """By NDCG on the queries that are held out."""
    strengths = [1e-4, 1e-3, 1e-2] if ranks else [1e-5, 1e-4, 1e-3, 1e-2]
    scores = [fitted(C, ranks, learn).predict(train.X[check]) for C in strengths]
    return strengths[np.argmax([ndcg(s, train.relevance[check], train.query[check]).mean() for s in scores])]


C = best_strength(ranks=True)
model = fitted(C, ranks=True)
proof = model[-1].certificate_
print(f"\nLinearRanker(C={C:g}): {proof}")
print(f"  the mean hinge over pairs is within {proof.relative_gap:.2%} of the least there is; tol asked for 0.10%")

# ---- On new queries: the ranker, the regression, and chance ----------------------------------------------------------

scores = {
    "LinearRanker": model.predict(test.X),
    "regression (Ridge)": fitted(best_strength(ranks=False), ranks=False).predict(test.X),
    "chance": np.random.default_rng(0).random(len(test.X)),
}
each = {name: ndcg(score, test.relevance, test.query) for name, score in scores.items()}
print("\nNDCG of the first 10 documents, mean over the test queries (1: the best order there is):")
for name, values in each.items():
    print(f"  {name:20} {values.mean():.3f} ± {values.std() / np.sqrt(len(values)):.3f}")

ours, theirs = each["LinearRanker"], each["regression (Ridge)"]
gain, doubt = np.mean(ours - theirs), np.std(ours - theirs) / np.sqrt(len(ours))
print(f"  the ranker's, less the regression's: {gain:+.3f} ± {doubt:.3f}, query by query")

# ---- A billion pairs: one query with two levels, where the share of pairs in the right order is the AUC --------------

print("\nOne query, two levels:")
rng = np.random.default_rng(0)
for m in (10_000,) if args.quick else (10_000, 100_000):
    X = rng.normal(size=(m, 20))
    clicked = (X @ np.linspace(-1.0, 1.0, 20) + 4.0 * rng.normal(size=m) > 4.0).astype(int)
    large = LinearRanker(random_state=0)
    taken = seconds(lambda large=large, X=X, clicked=clicked: large.fit(X, clicked))
    pairs, proven = clicked.sum() * (m - clicked.sum()), large.certificate_.relative_gap
    print(f"  {m:7,} rows, {pairs:13,} pairs: {taken:5.2f} s, within {proven:.3%} of the best")

figure, (left, right) = panels(2, width=5.4)
firsts = [1, 2, 3, 5, 7, 10, 15, 20]
looks = zip(scores.items(), (BLUE, ORANGE, GREY), "os^", strict=True)
for (name, score), colour, marker in looks:
    curve = [ndcg(score, test.relevance, test.query, k).mean() for k in firsts]
    left.plot(firsts, curve, color=colour, marker=marker, label=name)
left.set_xticks(firsts)
left.set(xlabel="first documents that count", ylabel="NDCG, mean over test queries", title="how good is the order?")
left.legend(frameon=False)
lowest = min(ours.min(), theirs.min()) - 0.02
right.plot([lowest, 1], [lowest, 1], color=GREY, linestyle="--", linewidth=1)
right.scatter(theirs, ours, s=16, color=BLUE, alpha=0.7)
right.set(xlabel="NDCG@10 of the regression", ylabel="NDCG@10 of LinearRanker", aspect="equal")
right.set_title(
    f"a dot a query: ranker better in {np.sum(ours > theirs)}, regression in {np.sum(ours < theirs)}", fontsize=11
)
save(figure, args.out, "learning_to_rank.png")
