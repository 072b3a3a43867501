"""Metrics of predictions beside scikit-learn's, on random problems.

    compare_metrics.py LIBCLTRAIN

Exit status 77: there is no scikit-learn.
"""
import ctypes
import sys
import warnings

try:
    import numpy as np
    from sklearn import metrics
except ImportError:
    sys.exit(77)

DOUBLES = ("accuracy", "top5", "precision", "recall", "f1", "precision_weighted", "recall_weighted", "f1_weighted", "auc", "average_precision",
           "calibration_error", "mae", "mse", "r2")


class Options(ctypes.Structure):
    _fields_ = [("classes", ctypes.c_int), ("outputs", ctypes.c_int64), ("logits", ctypes.c_bool), ("most_scores", ctypes.c_int64)]


class Evaluation(ctypes.Structure):
    _fields_ = [("samples", ctypes.c_int64)] + [(name, ctypes.c_double) for name in DOUBLES] + [("exact", ctypes.c_bool)]


LIBRARY = ctypes.CDLL(sys.argv[1])
LIBRARY.clt_evaluator_confusion.restype = ctypes.c_int64
LIBRARY.clt_error_detail.restype = ctypes.c_char_p


def call(function, *arguments):
    status = function(*arguments)
    assert status == 0, LIBRARY.clt_error_detail()


def evaluate(predicted, truth, pieces=3, **options):
    """The metrics, and the confusion matrix, of what was counted in some pieces."""
    evaluator, result = ctypes.c_void_p(), Evaluation()
    call(LIBRARY.clt_evaluator_create, ctypes.byref(evaluator), ctypes.byref(Options(**options)))
    for p, t in zip(np.array_split(predicted, pieces), np.array_split(truth, pieces)):
        p, t = np.ascontiguousarray(p), np.ascontiguousarray(t)
        call(LIBRARY.clt_evaluator_add, evaluator, ctypes.c_void_p(p.ctypes.data), ctypes.c_void_p(t.ctypes.data), ctypes.c_int64(len(p)))
    call(LIBRARY.clt_evaluator_result, evaluator, ctypes.byref(result))
    k = options.get("classes", 0)
    confusion = np.array([[LIBRARY.clt_evaluator_confusion(evaluator, t, c) for c in range(k)] for t in range(k)])
    LIBRARY.clt_evaluator_destroy(evaluator)
    return result, confusion


def close(what, got, wanted, bound):
    assert abs(got - wanted) <= bound, f"{what}: {got}, scikit-learn {wanted}"


def classify(draw):
    """A random problem, of some of whose classes there may be no sample, with scores that are often equal."""
    k, n = int(draw.integers(2, 12)), int(draw.integers(20, 400))
    truth = draw.integers(0, max(2, k - int(draw.integers(0, 3))), n).astype(np.int32)
    logits = draw.normal(size=(n, k)) + 1.5 * (truth[:, None] == np.arange(k))
    if draw.random() < 0.5:
        logits = np.round(logits * 2) / 2
    p = np.exp(logits - logits.max(1, keepdims=True))
    return k, truth, (p / p.sum(1, keepdims=True)).astype(np.float32)


def check_classes(draw):
    k, truth, p = classify(draw)
    got, confusion = evaluate(p, truth, classes=k)
    best = p.argmax(1)
    assert (confusion == metrics.confusion_matrix(truth, best, labels=range(k))).all()
    close("accuracy", got.accuracy, metrics.accuracy_score(truth, best), 1e-12)
    for average, suffix in (("macro", ""), ("weighted", "_weighted")):
        wanted = metrics.precision_recall_fscore_support(truth, best, average=average, zero_division=0)
        for name, value in zip(("precision", "recall", "f1"), wanted):
            close(name + suffix, getattr(got, name + suffix), value, 1e-12)
    if k > 5 and all(len(set(row)) == k for row in p):
        close("top5", got.top5, metrics.top_k_accuracy_score(truth, p, k=5, labels=range(k)), 1e-12)
    present = [1] if k == 2 else [c for c in range(k) if 0 < (truth == c).sum() < len(truth)]
    auc = np.mean([metrics.roc_auc_score(truth == c, p[:, c]) for c in present])
    precision = np.mean([metrics.average_precision_score(truth == c, p[:, c]) for c in present])
    close("auc", got.auc, auc, 1e-9)
    close("average precision", got.average_precision, precision, 1e-9)
    binned, _ = evaluate(p, truth, classes=k, most_scores=-1)
    assert got.exact and not binned.exact
    close("auc of bins", binned.auc, auc, 2e-2)
    close("average precision of bins", binned.average_precision, precision, 4e-2)


def check_numbers(draw):
    n, k = int(draw.integers(5, 300)), int(draw.integers(1, 5))
    truth = (draw.normal(size=(n, k)) * 3 + 100).astype(np.float32)
    predicted = (truth + draw.normal(size=(n, k))).astype(np.float32)
    got, _ = evaluate(predicted, truth, outputs=k)
    a, b = truth.astype(np.float64), predicted.astype(np.float64)
    close("mae", got.mae, metrics.mean_absolute_error(a, b), 1e-10)
    close("mse", got.mse, metrics.mean_squared_error(a, b), 1e-10)
    close("r2", got.r2, metrics.r2_score(a, b), 1e-9)


def main():
    warnings.simplefilter("ignore")
    for seed in range(50):
        check_classes(np.random.default_rng(seed))
        check_numbers(np.random.default_rng(seed))
    print("50 problems of classes and 50 of numbers: as scikit-learn")


main()
