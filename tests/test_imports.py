"""A part of the package loads only what it needs."""

import pickle
import subprocess
import sys

import pytest

import tidegate
import tidegate.streams

JOINS = ("checks", "policies", "sampling", "models", "caching", "relations", "experiments", "engine.operator")


def loaded(code: str) -> set[str]:
    """The modules that a new interpreter has loaded after this code."""
    program = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    return set(done.stdout.split())


def below(modules: set[str], *packages: str) -> list[str]:
    """Those of the modules that are one of these packages of tidegate, or in one."""
    names = [f"tidegate.{package}" for package in packages]
    return sorted(one for one in modules if any(one == name or one.startswith(name + ".") for name in names))


def test_import_loads_nothing_else() -> None:
    modules = loaded("import tidegate")
    assert {name for name in modules if name.split(".")[0] == "tidegate"} == {
        "tidegate",
        "tidegate.lazy_package",
    }
    assert "numpy" not in modules


@pytest.mark.parametrize(
    "code", ["import tidegate; tidegate.alert", "from tidegate.spark.alert.alert import alert"]
)
def test_alert_loads_no_samplers_and_no_policies(code: str) -> None:
    assert (
        below(
            loaded(code),
            *JOINS,
            "spark.join",
            "spark.bucket.join",
            "spark.sample",
            "spark.pool",
            "spark.lookup",
        )
        == []
    )


def test_a_worker_of_an_alert_loads_no_parser_and_no_edge_filter() -> None:
    modules = loaded("from tidegate.spark.alert.processor import AlertProcessor")
    assert (
        below(
            modules, *JOINS, "spark.join", "spark.bucket.join", "spark.query", "spark.frames", "alerts.edge"
        )
        == []
    )
    assert "sqlglot" not in modules


def test_the_edge_filter_loads_nothing_of_spark_and_no_proofs() -> None:
    modules = loaded("from tidegate.alerts.edge import Edge")
    assert below(modules, *JOINS, "spark", "alerts.certification", "alerts.search", "streams") == []
    assert modules.isdisjoint({"pyspark", "pandas", "sqlglot"})


def test_the_command_edge_loads_nothing_of_spark_and_no_policies() -> None:
    run = "import os; os.dup2(os.open(os.devnull, os.O_RDONLY), 0); import tidegate.cli\n"
    run += "tidegate.cli.app(['edge', '--bracket', '4'], standalone_mode=False)"
    modules = loaded(run)
    assert below(modules, *JOINS, "spark", "alerts.certification") == []
    assert modules.isdisjoint({"pyspark", "sqlglot"})  # pyarrow loads pandas where it is installed


def test_public_names_are_listed_before_they_are_loaded() -> None:
    code = "import tidegate as tg; assert {'join', 'alert', 'policies', '__version__'} <= set(dir(tg))"
    assert below(loaded(code), "spark", "policies") == []


def test_a_function_is_not_hidden_by_the_module_of_its_name() -> None:
    code = "import tidegate.engine.simulate, tidegate; assert tidegate.engine.simulate is tidegate.simulate"
    assert "tidegate.engine.simulate" in loaded(code)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        loaded("import tidegate; tidegate.nothing")
    assert "module 'tidegate' has no attribute 'nothing'" in raised.value.stderr


@pytest.mark.spark
def test_a_worker_of_a_join_with_fifo_loads_few_modules() -> None:
    modules = loaded(
        """
from tidegate.spark.packing.row_packer import RowPacker
from tidegate.spark.query.processor import JoinProcessor
from tidegate.spark.state.deferred_processor import DeferredProcessor
from tidegate.policies import Fifo
"""
    )
    ours = {name for name in modules if name.split(".")[0] == "tidegate"}
    assert len(ours) <= 68
    not_needed = ("models", "importance", "sampling", "experiments", "caching", "alerts", "allocation")
    assert below(modules, *not_needed, "policies.heeb", "policies.age", "spark.frames", "spark.pool") == []
    assert "sqlglot" not in modules


def test_the_daemon_limits_the_threads_of_numpy_before_it_loads_it() -> None:
    assert "numpy" not in loaded("import tidegate.spark.session.daemon")


@pytest.mark.spark
def test_running_a_join_with_fifo_loads_nothing_else() -> None:
    code = """
from tests.spark.buckets_by_hand import Arrival, Hand, plan
from tidegate.spark.packing.row_packer import RowPacker
from tidegate.spark.query.processor import JoinProcessor
before = set(sys.modules)
hand = Hand(plan(budget=2))
hand.step({"left": [Arrival(1, 1, "a"), Arrival(2, 1, "b")], "right": [Arrival(1, 2, "c")]})
assert len(hand.results) == 1
late = [name for name in sys.modules if name.startswith("tidegate.") and name not in before]
assert late == ["tidegate.policies.fifo"], late
"""
    loaded(code)


@pytest.mark.spark
def test_a_policy_by_name_loads_no_other_policies() -> None:
    code = "from tidegate.spark.join.join import join; from tidegate.policies import find; find('fifo')"
    assert below(loaded(code), "models.processes", "policies.heeb", "policies.age", "sampling") == []


@pytest.mark.parametrize("bucket", ["join.bucket", "alert.bucket"])
def test_a_bucket_needs_no_spark(bucket: str) -> None:
    code = f"sys.modules['pyspark'] = None; import tidegate.spark.bucket.{bucket}"
    assert f"tidegate.spark.bucket.{bucket}" in loaded(code)


def test_a_package_can_be_pickled_by_name() -> None:
    """A user-defined function of Spark may use `tg`."""
    assert pickle.loads(pickle.dumps(tidegate)) is tidegate  # noqa: S301 - our own bytes
    assert pickle.loads(pickle.dumps(tidegate.streams)) is tidegate.streams  # noqa: S301
