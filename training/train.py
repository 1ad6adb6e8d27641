"""Learns the weights of the review of broadcasts, or measures them by cross-validation. How to call it: docs/REVIEW.md."""

import argparse
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from texts import HERE, texts

ROOT = HERE.parent
WEIGHTS = ROOT / "crates/core/src/review/weights.bin"
BUCKETS = 1 << 16
COPIES = 6
# A business message refused costs more than a private one, and a private one as much as spam that passes.
IMPORTANCE = {"business": 3.0, "ham": 1.0, "abuse": 1.0, "spam": 1.0, "smishing": 1.5}
BAD = {"abuse", "spam", "smishing"}


def features(lines, program):
    """The features of every text, by the same code that the server runs."""
    out = subprocess.run(program, input="\n".join(lines), capture_output=True, text=True, check=True, cwd=ROOT).stdout.splitlines()
    assert len(out) == len(lines), (len(out), len(lines))
    indptr, indices, data = [0], [], []
    for line in out:
        value, *buckets = line.split()
        indices += map(int, buckets)
        data += [float(value)] * len(buckets)
        indptr.append(len(indices))
    return csr_matrix((data, indices, indptr), shape=(len(lines), BUCKETS), dtype=np.float64)


def collected(path):
    """The labelled collections: near-duplicates, which begin with the same words, are of one group."""
    for line in Path(path).read_text(encoding="utf-8").splitlines()[1:]:
        label, text, *_ = line.split("\t")
        words = re.sub(r"[^a-z ]", "", text.lower()).split()
        yield label, "c " + " ".join(words[:3]), "en", label, text


def own():
    for label, file in (("business", "business.tsv"), ("abuse", "abuse.tsv")):
        for at, lang, category, text in texts(file, COPIES):
            yield label, f"{label} {at}", lang, category, text


def fit(x, labels, c):
    y = np.array([label in BAD for label in labels])
    weight = np.array([IMPORTANCE[label] / (COPIES if label in ("business", "abuse") else 1) * 1.0 for label in labels])
    return LogisticRegression(C=c, solver="liblinear", max_iter=200).fit(x, y, sample_weight=weight)


def crossed(x, rows, c, folds=5):
    """The margin of every text under a model that has not seen its group."""
    labels, groups = [row[0] for row in rows], [row[1] for row in rows]
    margins = np.zeros(len(rows))
    for seen, kept in GroupKFold(folds).split(x, labels, groups):
        margins[kept] = fit(x[seen], [labels[n] for n in seen], c).decision_function(x[kept])
    return margins


def table(rows, margins, threshold):
    """Counts of texts and of refused ones, by label, language and category."""
    counts = {}
    for (label, _, lang, category, _), margin in zip(rows, margins):
        for key in ((label, "", ""), (label, lang, ""), (label, "", category)):
            seen = counts.setdefault(key, [0, 0])
            seen[0] += 1
            seen[1] += margin > threshold
    return counts


def write(model, threshold):
    """Format: scale and bias as f32, little-endian, then one i8 for every bucket. The threshold is part of the bias: above 0 is refused."""
    weights = model.coef_[0]
    scale = float(np.abs(weights).max() / 127)
    WEIGHTS.write_bytes(struct.pack("<ff", scale, float(model.intercept_[0] - threshold)) + np.round(weights / scale).astype(np.int8).tobytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("labelled", help="tab-separated: label (ham, spam, smishing), text; with a head line")
    parser.add_argument("--c", type=float, default=100.0, help="inverse strength of regularisation")
    parser.add_argument("--threshold", type=float, default=0.0, help="margin above which a text is refused")
    parser.add_argument("--cross", action="store_true", help="cross-validate and write nothing")
    parser.add_argument("--verbose", action="store_true", help="with --cross: show the texts on the wrong side")
    parser.add_argument("--program", default="cargo run -q -p nuncio-core --example review_features", help="prints the features of lines")
    args = parser.parse_args()
    rows = [*collected(args.labelled), *own()]
    x = features([row[4] for row in rows], args.program.split())
    labels = [row[0] for row in rows]
    if not args.cross:
        write(fit(x, labels, args.c), args.threshold)
        return
    margins = crossed(x, rows, args.c)
    for threshold in sorted({args.threshold, -0.5, 0.0, 0.5, 1.0}):
        refused = {key[0]: f"{n[1]}/{n[0]}" for key, n in table(rows, margins, threshold).items() if key[1:] == ("", "")}
        print(f"threshold {threshold}: refused {refused}")
    for (label, lang, category), (seen, refused) in sorted(table(rows, margins, args.threshold).items()):
        print(f"{label}\t{lang}\t{category}\t{refused}/{seen}")
    if args.verbose:
        for row, margin in sorted(zip(rows, margins), key=lambda pair: pair[1]):
            if (margin > args.threshold) != (row[0] in BAD) and (row[0] == "business" or row[0] == "abuse"):
                print(f"{margin:.2f}\t{row[0]}\t{row[4]}")


if __name__ == "__main__":
    main()
