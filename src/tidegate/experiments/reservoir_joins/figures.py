"""The experiments of sections 2.2 and 5."""

from __future__ import annotations

from typing import Final

from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.plots import LinePlot
from tidegate.experiments.reservoir_joins import claims, measures
from tidegate.experiments.table_layout import TableLayout

_CHOSEN: Final = (
    "The paper does not state when the sample is used: after half of the time. Steps of ten units of time. By ranks, "
    "RJS and PRJS use our UNIFORM, which also samples more matches than expected. As printed, they use the printed "
    "UNIFORM, and PRJS lowers its fraction in steps of 0.001, which the paper does not state."
)
_TIME: Final = {"x": "time units"}
_PER_KEY: Final = (
    " Chi-square is divided by the number of keys minus 1, so its mean is 1 for a uniform sample. It is computed "
    "against the expected counts of a sample of the same size, and against those of a full reservoir."
)

_UNSORTED: Final = Grid(
    {"algorithm": measures.ALGORITHMS, "units": (10_000,), "every": (100,), "fanout": (0,)},
    runs=50,
    quick={"units": (1500,), "every": (50,)},
    quick_runs=5,
)


def _confidence(name: str, counts: tuple[int, ...], finding: str) -> Experiment:
    return Experiment(
        f"reservoir-joins/{name}",
        "uniformity confidence of a reservoir that has grown (equation 2)",
        finding,
        Grid({"m": counts, "k": (10_000,), "r": (100,), "delta": (50,)}),
        measures.confidence,
        TableLayout(("m",), ("confidence",)),
        (LinePlot("m", "confidence", "delta", labels={"y": "uniformity confidence, %"}),),
        claims.claims_of_confidence,
        "The paper does not state k, r and delta: 10,000, 100 and 50.",
    )


EXPERIMENTS: Final = (
    _confidence("figure2", tuple(range(1000, 12_001, 500)), "The confidence rises with m and saturates."),
    _confidence("figure3", tuple(range(9000, 12_001, 250)), "It never reaches 100 %."),
    Experiment(
        "reservoir-joins/figure5",
        "average size of the sample over time",
        "PRJS's sample grows until the enlarged reservoir is filled; RJS's never exceeds the initial size.",
        Grid(
            {
                "algorithm": measures.ALGORITHMS,
                "units": (10_000,),
                "use_at": (5000,),
                "every": (10,),
                "step": (measures.STEP,),
            },
            runs=50,
            quick={"units": (1500,), "use_at": (750,), "every": (50,)},
            quick_runs=3,
        ),
        measures.sizes,
        TableLayout(("algorithm",), ("grew", "size", "held", "peak")),
        (
            LinePlot("time", "held", "algorithm", markers=False, labels=_TIME | {"y": "results held"}),
            LinePlot(
                "time", "size", "algorithm", markers=False, labels=_TIME | {"y": "size of the reservoir"}
            ),
        ),
        claims.claims_of_sizes,
        _CHOSEN + " The table has means over runs and over time.",
    ),
    Experiment(
        "reservoir-joins/figure6",
        "size of the sample over the first 1000 units of time, of single runs",
        "It falls when the reservoir grows, since some of the sample is evicted, and recovers quickly.",
        Grid(
            {
                "algorithm": ("PRJS", "PRJS as printed"),
                "units": (1000,),
                "use_at": (5000,),
                "every": (5,),
                "step": (1,),
            },
            runs=10,
            quick={"every": (10,)},
            quick_runs=3,
        ),
        measures.sizes,
        TableLayout(("algorithm", "seed"), ("grew", "fell by", "size")),
        (LinePlot("time", "held", "seed", "algorithm", markers=False, labels=_TIME | {"y": "results held"}),),
        claims.claims_of_one_run,
        _CHOSEN.replace("Steps of ten units", "Steps of one unit")
        + " That is after 5000 units, as in Figure 5. We take these to be its first 1000.",
    ),
    Experiment(
        "reservoir-joins/figure7",
        "size of PRJS's reservoir by the number of expected results",
        "It is larger for larger l, and saturates.",
        Grid(
            {
                "algorithm": ("PRJS", "PRJS as printed"),
                "use_at": (300, 600, 1000, 2000, 3000, 5000, 7500, 10_000),
            },
            runs=10,
            quick={"use_at": (300, 600, 1200)},
            quick_runs=3,
        ),
        measures.by_results,
        TableLayout(("algorithm", "use_at"), ("l", "size", "held")),
        (
            LinePlot("l", "size", "algorithm", labels={"x": "l, expected results"}),
            LinePlot("l", "held", "algorithm", labels={"x": "l, expected results"}),
        ),
        claims.claims_of_results,
        _CHOSEN.replace("after half of the time", "l is that of equation 6 for different times"),
    ),
    Experiment(
        "reservoir-joins/initial-size",
        "size of PRJS's reservoir by its initial size",
        "PRJS ends with a larger reservoir for every initial size.",
        Grid(
            {
                "algorithm": ("PRJS", "PRJS as printed"),
                "use_at": (5000,),
                "initial": (50, 100, 200, 400),
            },
            runs=5,
            quick={"use_at": (750,), "initial": (50, 100)},
            quick_runs=3,
        ),
        measures.by_results,
        TableLayout(("algorithm", "initial"), ("size", "held")),
        (LinePlot("initial", "size", "algorithm", labels={"x": "initial size"}),),
        claims.claims_of_initial_sizes,
        _CHOSEN.replace("after half of the time", "after 5000 units")
        + " The initial sizes are not stated either: 50 to 400 of the same 1600 rows of memory.",
        "A reservoir that is large for the expected results could not be refilled in time, and does not grow.",
    ),
    Experiment(
        "reservoir-joins/figure8",
        "uniformity of the sample over time",
        "PRJS's falls when the reservoir grows and recovers before the time of use; RJS's is better and stable.",
        _UNSORTED,
        measures.over_time,
        TableLayout(("algorithm",), ("chi-square", "of its size", "by time", "held")),
        tuple(
            LinePlot("time", number, "algorithm", markers=False, labels=_TIME | {"y": label})
            for number, label in (
                ("chi-square", "chi-square by keys"),
                ("of its size", "chi-square by keys, of a full reservoir"),
                ("by time", "chi-square by arrival of results"),
            )
        ),
        claims.claims_of_uniformity,
        _CHOSEN + _PER_KEY + " `by time` is the same over ten periods with equally many results.",
        "If keys come in random order, recent results have the same keys as old ones, so a sample that prefers "
        "recent results looks uniform by keys. The bias shows by time. By keys it shows only if a reservoir that "
        "is not full yet is compared with a full one.",
    ),
    Experiment(
        "reservoir-joins/figure9",
        "uniformity of the sample on partly sorted streams",
        "PRJS's suffers more, the more the streams are sorted. RJS is not sensitive to order.",
        Grid(
            {
                "algorithm": measures.ALGORITHMS,
                "units": (10_000,),
                "every": (100,),
                "fanout": (2, 3, 4),
            },
            runs=50,
            quick={"units": (1500,), "every": (50,)},
            quick_runs=3,
        ),
        measures.over_time,
        TableLayout(("algorithm", "fanout"), ("chi-square", "by time", "held")),
        (LinePlot("time", "chi-square", "fanout", "algorithm", markers=False, labels=_TIME),),
        claims.claims_of_order,
        _CHOSEN + _PER_KEY + " Models are those of streams in random order.",
    ),
    Experiment(
        "reservoir-joins/figure10",
        "error of AVG over time",
        "PRJS's is larger right after the growth, and falls below RJS's before the time of use.",
        _UNSORTED,
        measures.over_time,
        TableLayout(("time",), ("off",), columns="algorithm"),
        (LinePlot("time", "off", "algorithm", labels=_TIME | {"y": "mean absolute error of AVG"}),),
        claims.claims_of_averages,
        _CHOSEN
        + " The averaged attribute is the left's, with mean 1000 and standard deviation 100. The paper records "
        "errors every 500 units. Here it is every 100, since the effect of the growth lasts less than 300.",
    ),
)
