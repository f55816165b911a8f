"""Anomaly detection: knowing only zeros, tell what is not a zero, and which zeros are odd.

What one learns here:
- `OneClassSVM(nu=…)`: no labels, only examples of what is normal; ν is the share of them that may be called outliers;
- that ν is kept, on the training images and on new ones, and what the certificate says;
- what the kernel is for: `LinearOneClassSVM` on the same pixels, and scikit-learn's exact kernel beside ours.

Run: python examples/anomaly_detection.py [--quick] [--out FOLDER]
"""

import numpy as np
import sklearn.svm
from common import BLUE, GREY, ORANGE, options, panels, save, seconds
from data import digits
from sklearn.metrics import roc_auc_score

from primalsvm import LinearOneClassSVM, OneClassSVM

args = options(__doc__)
X, digit, X_test, digit_test = digits(args.quick)
zeros, normal = X[digit == 0], digit_test == 0
side = int(np.sqrt(X.shape[1]))
print(f"{len(zeros):,} zeros to learn from ({side} × {side} pixels)")
print(f"{normal.sum():,} zeros and {(~normal).sum():,} other digits to test on")

# ---- One fit for each ν: how many are called outliers? ---------------------------------------------------------------

landmarks = min(256, len(zeros))  # features, by which the kernel exp(−γ ‖s − t‖²) is approximated
print("\n   ν     called outliers:  training zeros  test zeros   other digits    relative gap")
shares = np.array([0.01, 0.02, 0.05, 0.1, 0.2])
called = []
for nu in shares.tolist():
    detector = OneClassSVM(nu=nu, n_components=landmarks, tol=1e-3, random_state=0).fit(zeros)
    said = detector.predict(X_test)  # +1: normal, −1: outlier
    called.append([np.mean(detector.predict(zeros) == -1), np.mean(said[normal] == -1), np.mean(said[~normal] == -1)])
    gap = detector.certificate_.relative_gap
    print(f"  {nu:4.0%} {called[-1][0]:29.1%} {called[-1][1]:11.1%} {called[-1][2]:14.1%}        {gap:.0e}")
asked, found = 100 * shares, 100 * np.array(called)

# ---- Which detector ranks best? AUC: how often a zero scores higher than another digit does --------------------------

print("\nAt ν = 5%: the time to fit, and the AUC on the test images:")
detectors = {
    "OneClassSVM": OneClassSVM(nu=0.05, n_components=landmarks, random_state=0),
    "scikit-learn's, exact kernel": sklearn.svm.OneClassSVM(nu=0.05),
    "LinearOneClassSVM": LinearOneClassSVM(nu=0.05, random_state=0),
}
areas = {}
for name, one in detectors.items():
    taken = seconds(lambda one=one: one.fit(zeros))
    areas[name] = roc_auc_score(normal, one.score_samples(X_test))
    print(f"  {name:30} {taken:5.2f} s   {areas[name]:.3f}")
print("A hyperplane through pixels knows which are bright, not which go together: that takes the kernel.")

# ---- The picture: scores, shares, and the oddest zeros ---------------------------------------------------------------

detector = detectors["OneClassSVM"]
figure, (left, middle, right) = panels(3, width=4.6, height=4.2, width_ratios=[1.2, 1, 1])
scores = detector.decision_function(X_test)
bins = np.linspace(*np.quantile(scores, [0.0, 1.0]), 50)
for kind, colour, label in ((~normal, ORANGE, "other digits"), (normal, BLUE, "zeros")):
    left.hist(scores[kind], bins, color=colour, alpha=0.6, density=True, label=label)
left.axvline(0.0, color=GREY, linestyle="--", label="below: outlier (ν = 5%)")
left.set(xlabel="decision_function", ylabel="share of test images (density)", yticks=[], title="scores of test images")
left.legend(frameon=False)
middle.set_xticks(asked, [f"{one:g}" for one in asked])
middle.plot(asked, asked, color=GREY, linestyle="--", linewidth=1, label="what ν asks for")
middle.plot(asked, found[:, 0], color=BLUE, marker="o", label="training zeros")
middle.plot(asked, found[:, 1], color=ORANGE, marker="s", linestyle=":", label="test zeros")
middle.set(xlabel="ν (%)", ylabel="called outliers (%)", title="is ν kept?")
middle.legend(frameon=False)
odd = zeros[np.argsort(detector.score_samples(zeros))[:16]].reshape(4, 4, side, side)
right.imshow(np.block([list(row) for row in np.pad(odd, ((0, 0), (0, 0), (1, 1), (1, 1)))]), cmap="gray_r")
right.axis("off")
right.set_title("the oddest training zeros")
save(figure, args.out, "anomaly_detection.png")
