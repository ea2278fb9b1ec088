"""The experiments of sections 2.2 and 5."""

from __future__ import annotations

from typing import Final

from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.plots import Lines
from tidegate.experiments.reservoir_joins import claims, measured
from tidegate.experiments.shown import Shown

_CHOSEN: Final = (
    "The paper does not tell when the sample is used: after half of the time. Steps of ten units of time. By ranks, "
    "RJS and PRJS stand on UNIFORM, which also samples matches beyond those expected; as printed, on the printed "
    "one, and PRJS lowers its fraction by 0.001 at a time, which the paper does not tell."
)
_TIME: Final = {"x": "time units"}
_PER_KEY: Final = (
    " Chi-square is divided by the number of keys less 1, so that it is 1 for a uniform sample in the mean; it is "
    "told against what a sample of as many results should have, and against what a full reservoir should."
)

_UNSORTED: Final = Grid(
    {"algorithm": measured.ALGORITHMS, "units": (10_000,), "every": (100,), "fanout": (0,)},
    runs=50,
    quick={"units": (1500,), "every": (50,)},
    quick_runs=5,
)


def _confidence(name: str, counts: tuple[int, ...], says: str) -> Experiment:
    return Experiment(
        f"reservoir-joins/{name}",
        "uniformity confidence of a reservoir that has grown (equation 2)",
        says,
        Grid({"m": counts, "k": (10_000,), "r": (100,), "delta": (50,)}),
        measured.confidence,
        Shown(("m",), ("confidence",)),
        (Lines("m", "confidence", "delta", says={"y": "uniformity confidence, %"}),),
        claims.claims_of_confidence,
        "The paper does not tell k, r and delta: 10,000, 100 and 50.",
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
                "algorithm": measured.ALGORITHMS,
                "units": (10_000,),
                "use_at": (5000,),
                "every": (10,),
                "step": (measured.STEP,),
            },
            runs=50,
            quick={"units": (1500,), "use_at": (750,), "every": (50,)},
            quick_runs=3,
        ),
        measured.sizes,
        Shown(("algorithm",), ("grew", "size", "held", "peak")),
        (
            Lines("time", "held", "algorithm", dots=False, says=_TIME | {"y": "results held"}),
            Lines("time", "size", "algorithm", dots=False, says=_TIME | {"y": "size of the reservoir"}),
        ),
        claims.claims_of_sizes,
        _CHOSEN + " Means of the table are over time, too.",
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
        measured.sizes,
        Shown(("algorithm", "seed"), ("grew", "fell by", "size")),
        (Lines("time", "held", "seed", "algorithm", dots=False, says=_TIME | {"y": "results held"}),),
        claims.claims_of_one_run,
        _CHOSEN.replace("Steps of ten units", "Steps of one unit")
        + " That is after 5000 units, as in Figure 5, of which these are taken to be the first 1000.",
    ),
    Experiment(
        "reservoir-joins/figure7",
        "size of PRJS's reservoir by the results that are to come",
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
        measured.by_results,
        Shown(("algorithm", "use_at"), ("l", "size", "held")),
        (
            Lines("l", "size", "algorithm", says={"x": "l, results to come"}),
            Lines("l", "held", "algorithm", says={"x": "l, results to come"}),
        ),
        claims.claims_of_results,
        _CHOSEN.replace("after half of the time", "l is that of equation 6 for different times"),
    ),
    Experiment(
        "reservoir-joins/initial-size",
        "size of PRJS's reservoir by its initial size",
        "Whatever the initial size, PRJS ends with a larger reservoir.",
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
        measured.by_results,
        Shown(("algorithm", "initial"), ("size", "held")),
        (Lines("initial", "size", "algorithm", says={"x": "initial size"}),),
        claims.claims_of_initial_sizes,
        _CHOSEN.replace("after half of the time", "after 5000 units")
        + " Nor the initial sizes: 50 to 400 of the same 1600 rows of memory.",
        "A reservoir that is large for the results to come has no time to be refilled, and does not grow.",
    ),
    Experiment(
        "reservoir-joins/figure8",
        "uniformity of the sample over time",
        "PRJS's falls when the reservoir grows and recovers before the time of use; RJS's is better and stable.",
        _UNSORTED,
        measured.over_time,
        Shown(("algorithm",), ("chi-square", "of its size", "by time", "held")),
        tuple(
            Lines("time", number, "algorithm", dots=False, says=_TIME | {"y": told})
            for number, told in (
                ("chi-square", "chi-square by keys"),
                ("of its size", "chi-square by keys, of a full reservoir"),
                ("by time", "chi-square by when results came"),
            )
        ),
        claims.claims_of_uniformity,
        _CHOSEN + _PER_KEY + " By time is the same over ten parts of the past with as many results each.",
        "Where keys come in an order at random, recent results have the same keys as old ones: a sample that prefers "
        "recent ones looks uniform by keys. By when results came, it shows; by keys, only if a reservoir that is not "
        "full yet is held against one that is.",
    ),
    Experiment(
        "reservoir-joins/figure9",
        "uniformity of the sample on partly sorted streams",
        "PRJS's is damaged more, the more sorted the streams are; RJS is not sensitive to order.",
        Grid(
            {
                "algorithm": measured.ALGORITHMS,
                "units": (10_000,),
                "every": (100,),
                "fanout": (2, 3, 4),
            },
            runs=50,
            quick={"units": (1500,), "every": (50,)},
            quick_runs=3,
        ),
        measured.over_time,
        Shown(("algorithm", "fanout"), ("chi-square", "by time", "held")),
        (Lines("time", "chi-square", "fanout", "algorithm", dots=False, says=_TIME),),
        claims.claims_of_order,
        _CHOSEN + _PER_KEY + " Models stay those of streams in an order at random.",
    ),
    Experiment(
        "reservoir-joins/figure10",
        "error of AVG over time",
        "PRJS's is larger right after the growth, and falls below RJS's before the time of use.",
        _UNSORTED,
        measured.over_time,
        Shown(("time",), ("off",), across="algorithm"),
        (Lines("time", "off", "algorithm", says=_TIME | {"y": "mean absolute error of AVG"}),),
        claims.claims_of_averages,
        _CHOSEN
        + " The averaged attribute is the left's, with mean 1000 and standard deviation 100. The paper notes errors "
        "every 500 units; here it is every 100, since what comes right after the growth is over within 300.",
    ),
)
