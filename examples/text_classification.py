"""Text classification: the newsgroup that a message is from.

What one learns here:
- a pipeline of TF-IDF and `LinearSVC`, on texts and with labels that are strings, as with scikit-learn;
- what the certificate says: how far, at most, the fit is from the best one there is, for each class and for all;
- `probability="sigmoid"`: how sure the classifier is, and whether it is right as often as it says.

Run: python examples/text_classification.py [--quick] [--out FOLDER]
"""

import numpy as np
import sklearn.svm
from common import BLUE, GREY, options, panels, save, seconds
from data import messages
from sklearn.calibration import calibration_curve
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline

from primalsvm import LinearSVC

args = options(__doc__)
train, test = messages(args.quick)
print(f"{len(train):,} messages to learn from, {len(test):,} later ones to test on, {train.group.nunique()} groups")

# ---- Texts in, names of groups out: the classifier is one step of a pipeline -----------------------------------------

words = TfidfVectorizer(sublinear_tf=True, min_df=2)
svc = LinearSVC(loss="squared_hinge", tol=1e-3, probability="sigmoid", random_state=0)
model = make_pipeline(words, svc)
model.fit(train.text, train.group)
accuracy = model.score(test.text, test.group)
print(f"\nRight on {accuracy:.1%} of the test messages")

proof = svc.certificate_
print(proof)
print(f"  P = {proof.primal:.5f} was reached, and no fit has less than D = {proof.dual:.5f}: this one is within")
print(
    f"  {proof.relative_gap:.2%} of the best, as proven; tol asked for 0.10%. P is the sum over the classes, of which"
)
hardest, group = max(zip(svc.certificates_, svc.classes_, strict=True))
print(f"  {group} is the hardest: within {hardest.relative_gap:.2%}")

# ---- The weights can be read: which words speak most for a group? ----------------------------------------------------

print("\nMost telling words:")
names = words.get_feature_names_out()
for name, weights in list(zip(svc.classes_, svc.coef_, strict=True))[:5]:
    print(f"  {name:25} {', '.join(names[np.argsort(-weights)[:5]])}")

# ---- Beside scikit-learn: the same matrix, the same loss, one core ---------------------------------------------------

X, X_test = words.transform(train.text), words.transform(test.text)
print("\nOn the TF-IDF matrix alone:")
both = {"primalsvm": LinearSVC(loss="squared_hinge", random_state=0), "scikit-learn": sklearn.svm.LinearSVC()}
for library, classifier in both.items():
    taken = seconds(lambda classifier=classifier: classifier.fit(X, train.group))
    print(f"  {library:12} {taken:5.2f} s, {classifier.score(X_test, test.group):.1%} right")

# ---- Probabilities: of the messages it is 80 % sure of, are 80 % right? ----------------------------------------------

chance = model.predict_proba(test.text)
sure, right = chance.max(axis=1), model.classes_[chance.argmax(axis=1)] == test.group
picky = sure > 0.8
print(
    f"\nIt is more than 80 % sure of {picky.mean():.0%} of the messages, and right on {right[picky].mean():.1%} of them"
)

figure, (first, second) = panels(2, width=6.4, height=4.8)
shares = confusion_matrix(test.group, model.predict(test.text), normalize="true")
first.grid(visible=False)
image = first.imshow(100 * shares, cmap="Blues", vmin=0, vmax=100)
ticks = np.arange(len(svc.classes_))
first.set_xticks(ticks, [])
first.set_yticks(ticks, svc.classes_, fontsize=8)
first.set(xlabel="predicted group, in the same order", ylabel="true group", title=f"{accuracy:.1%} right")
figure.colorbar(image, ax=first, label="% of a group's messages")
happened, said = calibration_curve(right, sure, n_bins=10, strategy="quantile")
second.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1, label="as often as it says")
second.plot(100 * said, 100 * happened, color=BLUE, marker="o", label="test messages, a tenth each")
second.set(xlabel="how sure it is (%)", ylabel="how often it is right (%)", xlim=(0, 101), ylim=(0, 101))
second.set_title("probabilities: sure, and rightly so?")
second.legend(frameon=False, loc="upper left")
save(figure, args.out, "text_classification.png")
