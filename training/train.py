"""Learns the weights of the review of broadcasts, or measures them by cross-validation. How to call it: docs/REVIEW.md."""

import argparse
import re
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from texts import HERE, texts

ROOT = HERE.parent
REPORT = ROOT / "docs/REVIEW.md"
MEASURED = "<!-- measured -->\n"
SHOWN = 40
WEIGHTS = ROOT / "crates/core/src/review/weights.bin"
BUCKETS = 1 << 16
# The threshold of a project that has not set its own.
REFUSED = 0.6
COPIES = 6
# More words than this make a text long, as in passages.rs.
LONG = 40
# A business message refused costs more than a private one. Chosen by cross-validation, since the templates outnumber the collections.
IMPORTANCE = {"business": 16.0, "ham": 2.0, "abuse": 1.0, "spam": 2.0, "smishing": 9.0}
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


def parts(rows):
    """The parts of long ordinary texts, since the review judges passages by themselves: sentences that follow one another."""
    for label, group, lang, category, text in rows:
        sentences = re.split(r"(?<=[.!?]) ", text)
        if label in BAD or len(text.split()) <= LONG:
            continue
        for at in range(len(sentences)):
            part = " ".join(sentences[at:at + 3])
            if len(part.split()) > LONG // 3:
                yield label, group, lang, "part", part


def fit(x, labels, c):
    y = np.array([label in BAD for label in labels])
    weight = np.array([IMPORTANCE[label] / (COPIES if label in ("business", "abuse") else 1) * 1.0 for label in labels])
    return LogisticRegression(C=c, solver="liblinear", max_iter=200).fit(x, y, sample_weight=weight)


def verdicts(weights, lines, program):
    """What the whole review, rules and model, makes of the texts with these weights: score, categories and flagged words of each."""
    command = [program, str(weights)] if weights else [program]
    out = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(out) == len(lines), (len(out), len(lines))
    return [(float(score), categories, flagged) for score, categories, flagged in (line.split("\t") for line in out)]


def crossed(x, rows, args, folds=5):
    """The verdict on every text by a review that has not seen its group."""
    labels, groups = [row[0] for row in rows], [row[1] for row in rows]
    found = [None] * len(rows)
    for seen, kept in GroupKFold(folds).split(x, labels, groups):
        with tempfile.NamedTemporaryFile() as weights:
            write(fit(x[seen], [labels[n] for n in seen], args.c), args.threshold, Path(weights.name))
            for at, verdict in zip(kept, verdicts(weights.name, [rows[n][4] for n in kept], f"{args.programs}/review_verdicts")):
                found[at] = verdict
    return found


def counted(rows, found):
    """Counts of texts and of refused ones, by label, language and category."""
    counts = {}
    for (label, _, lang, category, _), (score, _, _) in zip(rows, found):
        for key in ((label, "", ""), (label, lang, ""), (label, "", category)):
            seen = counts.setdefault(key, [0, 0])
            seen[0] += 1
            seen[1] += score < REFUSED
    return counts


def write(model, threshold, path=WEIGHTS):
    """Format: scale and bias as f32, little-endian, then one i8 for every bucket. The threshold is part of the bias: above 0 is refused."""
    weights = model.coef_[0]
    scale = float(np.abs(weights).max() / 127)
    path.write_bytes(struct.pack("<ff", scale, float(model.intercept_[0] - threshold)) + np.round(weights / scale).astype(np.int8).tobytes())


def row(cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def report(rows, crossed_verdicts, args):
    """The measured part of docs/REVIEW.md."""
    counts = counted(rows, crossed_verdicts)
    out = "\n### Cross-validated\n\n" + row(["Texts", "Language or category", "Passed", "Refused", "Refused, %"]) + row(["---"] * 2 + ["--:"] * 3)
    for (label, lang, category), (seen, refused) in sorted(counts.items()):
        if label in ("business", "abuse") or not (lang or category):
            out += row([label, lang or category or "all", seen - refused, refused, f"{100 * refused / seen:.1f}"])
    kept = [line.split("\t") for line in (HERE / "heldout.tsv").read_text(encoding="utf-8").splitlines()]
    found = verdicts(None, [text for *_, text in kept], f"{args.programs}/review_verdicts")
    for label, title in (("good", "Ordinary messages"), ("bad", "Fraud and spam")):
        texts = [(text, verdict) for (kind, _, _, text), verdict in zip(kept, found) if kind == label]
        refused = sum(score < REFUSED for _, (score, *_) in texts)
        out += f"\n### {title}, never learned from: {refused} of {len(texts)} refused\n\n" + row(["Score", "Text", "Categories", "Flagged"]) + row(["--:"] + ["---"] * 3)
        step = max(1, len(texts) // SHOWN)
        for text, (score, categories, flagged) in texts[::step][:SHOWN]:
            out += row([f"{score:.2f}", text.replace("<", "&lt;"), categories, flagged.replace(" | ", " · ")])
    document = REPORT.read_text(encoding="utf-8")
    head, _ = document.split(MEASURED)
    REPORT.write_text(head + MEASURED + out, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("labelled", help="tab-separated: label (ham, spam, smishing), text; with a head line")
    parser.add_argument("--c", type=float, default=100.0, help="inverse strength of regularisation")
    parser.add_argument("--threshold", type=float, default=0.1, help="margin above which a text is suspect")
    parser.add_argument("--measure", action="store_true", help="do not learn: cross-validate and write the tables of docs/REVIEW.md")
    parser.add_argument("--programs", default=str(ROOT / "target/debug/examples"), help="folder of review_features and review_verdicts")
    args = parser.parse_args()
    rows = [*collected(args.labelled), *own()]
    rows += list(parts(rows))
    x = features([row[4] for row in rows], f"{args.programs}/review_features")
    if not args.measure:
        write(fit(x, [row[0] for row in rows], args.c), args.threshold)
        return
    found = crossed(x, rows, args)
    found, rows = zip(*((verdict, row) for verdict, row in zip(found, rows) if row[3] != "part"))
    report(rows, found, args)
    for key, (seen, refused) in counted(rows, found).items():
        if key[1:] == ("", ""):
            print(f"{key[0]}: {refused} of {seen} refused")
    for (label, _, _, category, text), (score, *_) in zip(rows, found):
        if (score < REFUSED) != (label in BAD) and label in ("business", "abuse"):
            print(f"{score:.2f}\t{label}\t{category}\t{text}")


if __name__ == "__main__":
    main()
