"""House prices: not one number but a band, in which nine of ten prices shall lie.

What one learns here:
- `LinearSVR(loss="pinball", quantile=…)` predicts quantiles: the median, and the edges of a band;
- numbers are scaled and kinds of places become columns, by scikit-learn's `ColumnTransformer`, in one pipeline;
- whether the bands keep their promise on houses that the model has not seen, and what the certificate says.

Run: python examples/house_prices.py [--quick] [--out FOLDER]
"""

import numpy as np
from common import BLUE, GREY, ORANGE, options, panels, save, seconds
from data import houses
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from primalsvm import LinearSVR

args = options(__doc__)
table = houses(args.quick)
price = table.pop("median_house_value") / 1_000  # in thousands of dollars, as is everything below
train, test, y_train, y_test = train_test_split(table, price, test_size=0.3, random_state=0)
print(f"{len(train):,} districts to learn from, {len(test):,} to test on, {table.shape[1]} columns")

# ---- One pipeline, fitted once for each quantile ---------------------------------------------------------------------

columns = make_column_transformer(
    (StandardScaler(), make_column_selector(dtype_include="number")),
    (OneHotEncoder(handle_unknown="ignore"), ["ocean_proximity"]),
)
pipeline = make_pipeline(columns, LinearSVR(loss="pinball", C=100.0, tol=1e-3, random_state=0))

print("\nShare of the test prices below the prediction, and the proven distance from the best fit:")
quantiles = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
models, below = {}, []
for quantile in quantiles.tolist():
    model = clone(pipeline).set_params(linearsvr__quantile=quantile).fit(train, y_train)
    models[quantile] = model
    below.append(np.mean(y_test < model.predict(test)))
    print(
        f"  asked for {quantile:4.0%}: {below[-1]:5.1%}   within {model[-1].certificate_.relative_gap:.2%} of the best"
    )
print("(tol asked for 0.10%. The certificate is about the fit to the training prices; only the test tells the rest.)")

low, middle, high = (models[quantile].predict(test) for quantile in (0.05, 0.5, 0.95))
inside = np.mean((low <= y_test) & (y_test <= high))
error = np.median(np.abs(y_test - middle))
print(f"\nThe median is off by ${error:,.0f}k or less for half of the test prices")
print(f"The band from 5% to 95% holds {inside:.1%} of them; it is ${np.median(high - low):,.0f}k wide, typically")

# ---- What moves the price, and what moves its upper edge -------------------------------------------------------------

print("\nDollars (k) for one standard deviation more, or for the place:       median   upper edge (95%)")
names = [name.split("__")[1] for name in columns.fit(train).get_feature_names_out()]
weights = [models[quantile][-1].coef_ for quantile in (0.5, 0.95)]
for k in np.argsort(-np.abs(weights[0]))[:5]:
    print(f"  {names[k]:64} {weights[0][k]:+8.1f} {weights[1][k]:+8.1f}")

# ---- Beside scikit-learn, whose quantile regression is a linear programme --------------------------------------------

some = slice(0, 5_000)
X, X_test = columns.transform(train[some]), columns.transform(test)
print(f"\nThe 95% quantile of {len(X):,} rows, matrix given:")
both = {
    "primalsvm": LinearSVR(loss="pinball", quantile=0.95, C=100.0),
    "scikit-learn": QuantileRegressor(quantile=0.95, alpha=0.0),
}
for library, regressor in both.items():
    taken = seconds(lambda regressor=regressor: regressor.fit(X, y_train[some]))
    loss = mean_pinball_loss(y_test, regressor.predict(X_test), alpha=0.95)
    print(f"  {library:12} {taken:6.3f} s, mean pinball loss on the test prices ${loss:.2f}k")

figure, (left, right) = panels(2, width=5.8, height=4.4)
shown = np.random.default_rng(0).permutation(len(test))[:300]
order = shown[np.argsort(middle[shown])]
place, actual = np.arange(len(order)), y_test.to_numpy()[order]
left.fill_between(place, low[order], high[order], color=BLUE, alpha=0.2, linewidth=0, label="5% to 95%")
left.plot(place, middle[order], color=BLUE, label="median")
left.scatter(place, actual, s=9, color=ORANGE, label="actual price", zorder=3)
left.set(xlabel="300 test districts, by predicted median", ylabel="price (thousands of dollars)")
left.set_title(f"{inside:.1%} of all test prices lie in the band")
left.legend(frameon=False, loc="upper left")
right.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1, label="what was asked for")
right.plot(100 * quantiles, 100 * np.array(below), color=BLUE, marker="o", label="test prices")
right.set(xlabel="quantile (%)", ylabel="prices below the prediction (%)", title="do the quantiles hold?")
right.legend(frameon=False, loc="upper left")
save(figure, args.out, "house_prices.png")
