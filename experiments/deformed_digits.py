"""MNIST-E: an endless stream of elastically deformed digits (as the ASSET paper's, after Loosli, Canu and Bottou 2006).

A digit is moved along a smooth random field: noise on the 28 × 28 grid, blurred with a Gaussian of width σ and scaled
so that a pixel moves by α pixels (root mean square), plus a small shift. A stream is fixed by its seed: block k of
digits is always the same, however far one has read.

    python -m experiments.deformed_digits [--picture digits.png]      draws some of them
"""

import argparse
from collections.abc import Iterator

import numba
import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.datasets import mnist

SIDE = 28
SIGMA = 5.0  # width of the blur, pixels
ALPHA = 0.7  # root mean square of the displacement, pixels: about as hard as the paper's
SHIFT = 0.3  # standard deviation of the shift, pixels
FIELDS = 1024  # smooth fields to combine: each digit gets the sum of two, with random signs
BLOCK = 1000  # digits


def smooth_fields(rng: np.random.Generator) -> np.ndarray:
    """`FIELDS` displacement fields of unit root mean square, 28 × 28 each."""
    noise = rng.standard_normal((FIELDS, SIDE, SIDE))
    fields = np.array([gaussian_filter(one, SIGMA, mode="constant") for one in noise])
    return (fields / np.sqrt((fields**2).mean(axis=(1, 2), keepdims=True))).astype(np.float32)


@numba.njit(nogil=True)
def deform(images, chosen, fields, first, second, signs, shifts, alpha, out):
    """out[k] = image chosen[k], read bilinearly at displaced places; signs and fields are for rows and columns."""
    for k in range(chosen.shape[0]):
        image = images[chosen[k]]
        for i in range(SIDE):
            for j in range(SIDE):
                dy = alpha * (signs[k, 0] * fields[first[k, 0], i, j] + signs[k, 1] * fields[second[k, 0], i, j])
                dx = alpha * (signs[k, 2] * fields[first[k, 1], i, j] + signs[k, 3] * fields[second[k, 1], i, j])
                y = i + dy + shifts[k, 0]
                x = j + dx + shifts[k, 1]
                y0, x0 = int(np.floor(y)), int(np.floor(x))
                fy, fx = y - y0, x - x0
                total = np.float32(0.0)
                for a in range(2):
                    for b in range(2):
                        if 0 <= y0 + a < SIDE and 0 <= x0 + b < SIDE:
                            weight = (fy if a else 1 - fy) * (fx if b else 1 - fx)
                            total += weight * image[(y0 + a) * SIDE + x0 + b]
                out[k, i * SIDE + j] = total / np.float32(255)


def stream(
    images: np.ndarray, labels: np.ndarray, n: int, seed: int = 0, alpha: float = ALPHA
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of deformed digits (float32 in [0, 1]) with their labels, n in all."""
    fields = smooth_fields(np.random.default_rng(seed))
    for block in range(-(-n // BLOCK)):
        rng = np.random.default_rng([seed, block])
        size = min(BLOCK, n - block * BLOCK)
        chosen = rng.integers(len(images), size=size)
        first, second = rng.integers(FIELDS, size=(2, size, 2))
        signs = (rng.choice([-1.0, 1.0], size=(size, 4)) / np.sqrt(2)).astype(np.float32)
        shifts = (SHIFT * rng.standard_normal((size, 2))).astype(np.float32)
        out = np.empty((size, SIDE * SIDE), np.float32)
        deform(images, chosen, fields, first, second, signs, shifts, np.float32(alpha), out)
        yield out, labels[chosen]


def main() -> None:
    """Draw some digits, each plain and deformed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="deformed-digits.png")
    import matplotlib.pyplot as plt

    path = parser.parse_args().picture
    images, labels = mnist("train")
    rows = [images[:12] / 255.0]
    rows += [next(stream(images[:12], labels[:12], 12, seed))[0] for seed in range(1, 5)]
    canvas = np.vstack([np.hstack([digit.reshape(SIDE, SIDE) for digit in row]) for row in rows])
    plt.imsave(path, canvas, cmap="gray_r")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
