"""Records what scipy says of intervals and tests: pip install scipy numpy; python test/parity/evals_golden.py

Writes test/parity/recorded/evals.json. The data is made here, by numpy with fixed seeds, and recorded with the answers.
"""
import json
import math
import pathlib
import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(7)
CONFIDENCES = [0.9, 0.95, 0.99]


def interval(low, high):
    return {"low": float(low), "high": float(high)}


def means():
    cases = []
    for name, values in {
        "two": [0.25, 1.5],
        "normal": rng.normal(3, 2, 12).round(6).tolist(),
        "shares": (rng.integers(0, 5, 40) / 4).tolist(),
        "large": rng.gamma(2, 2, 500).round(6).tolist(),
    }.items():
        for confidence in CONFIDENCES:
            low, high = stats.t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
            cases.append({"name": name, "values": values, "confidence": confidence, "mean": float(np.mean(values)), **interval(low, high)})
    return cases


def wilson():
    cases = []
    for passed, count in [(0, 5), (5, 5), (1, 7), (50, 100), (2, 3), (1234, 2000)]:
        for confidence in CONFIDENCES:
            found = stats.binomtest(passed, count).proportion_ci(confidence, method="wilson")
            cases.append({"passed": passed, "count": count, "confidence": confidence, **interval(found.low, found.high)})
    return cases


def mcnemar():
    return [
        {"regressed": b, "improved": c, "pValue": float(stats.binomtest(b, b + c, 0.5).pvalue)}
        for b, c in [(1, 0), (0, 4), (10, 0), (5, 5), (3, 9), (60, 41), (500, 420), (1000, 1000), (12, 40)]
    ]


def paired():
    cases = []
    for count, shift in [(5, 0.4), (40, -0.1), (300, 0.02)]:
        before = (rng.integers(0, 9, count) / 8).tolist()
        after = np.clip(np.array(before) + rng.normal(shift, 0.3, count), 0, 1).round(6).tolist()
        for confidence in CONFIDENCES:
            found = stats.ttest_rel(after, before)
            ends = found.confidence_interval(confidence)
            cases.append({"before": before, "after": after, "confidence": confidence, "pValue": float(found.pvalue),
                          "mean": float(np.mean(np.array(after) - np.array(before))), **interval(ends.low, ends.high)})
    return cases


def pass_at_k():
    return [
        {"samples": n, "passed": c, "k": k, "value": 1 - math.comb(n - c, k) / math.comb(n, k)}
        for n, c, k in [(1, 0, 1), (1, 1, 1), (10, 3, 1), (10, 3, 5), (10, 8, 5), (200, 13, 100), (200, 1, 10), (64, 64, 64)]
    ]


out = pathlib.Path(__file__).parent / "recorded" / "evals.json"
recorded = {"recordedBy": f"evals_golden.py, scipy {scipy.__version__}, numpy {np.__version__}", "means": means(),
            "wilson": wilson(), "mcnemar": mcnemar(), "paired": paired(), "passAtK": pass_at_k()}
out.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")
