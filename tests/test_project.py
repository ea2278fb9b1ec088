"""The project follows its rules about dependencies, layers and documentation."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="ignore")


PYPROJECT: dict[str, Any] = tomllib.loads(text("pyproject.toml"))


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def modules(folder: str) -> set[str]:
    return {
        path.stem for path in (ROOT / "src/tidegate" / folder).glob("[a-z]*") if path.suffix in ("", ".py")
    }


def dependencies() -> list[str]:
    project = PYPROJECT["project"]
    groups = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *PYPROJECT["dependency-groups"].values(),
    ]
    return [re.split(r"[^\w-]", requirement)[0] for group in groups for requirement in group]


def test_lock_pins_every_package_by_hash_and_names_no_address() -> None:
    lock = text("requirements.lock")
    pinned = re.compile(r"[\w.-]+(\[[\w,-]+\])?==\S+ .*--hash=sha256:", re.DOTALL)
    assert not [package for package in re.split(r"\n(?=\S)", lock) if not pinned.match(package)]
    assert not re.search(r"://|--(extra-)?index|--find-links", lock)


@pytest.mark.parametrize("dependency", dependencies())
def test_dependency_is_locked_and_justified(dependency: str) -> None:
    assert re.search(rf"^{dependency}(\[.*\])?==", text("requirements.lock"), re.MULTILINE)
    assert re.search(rf"^\| {dependency} \| .+ \|$", text("docs/dependencies.md"), re.MULTILINE)


def test_the_core_imports_no_heavy_package() -> None:
    heavy = {"pyspark", "pandas", "ortools", "matplotlib", "duckdb", "adbc_driver_manager"}
    loaded = run(sys.executable, "-c", "import sys, tidegate; print(*sys.modules)").split()
    assert heavy.isdisjoint(loaded)


def test_the_command_line_loads_experiments_only_to_run_them() -> None:
    loaded = run(sys.executable, "-c", "import sys, tidegate.cli; print(*sys.modules)").split()
    assert not [name for name in loaded if name.startswith(("tidegate.experiments", "matplotlib"))]


def test_contributing_lists_every_make_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", text("Makefile"), re.MULTILINE)) - {"help"}
    assert set(re.findall(r"^\| `make ([a-z-]+)` \|", text("CONTRIBUTING.md"), re.MULTILINE)) == targets


def test_layers_have_no_exceptions_and_no_core_module_may_import_spark() -> None:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    assert not [c for c in contracts if c.keys() & {"ignore_imports", "exhaustive_ignores"}]
    without_spark = {
        name for c in contracts if c.get("forbidden_modules") == ["pyspark"] for name in c["source_modules"]
    }
    core = modules("") - {"spark", "experiments", "cli"}
    assert without_spark == {f"tidegate.{name}" for name in core} | {"tidegate.spark.bucket"}


def test_the_way_of_a_row_names_few_files_that_exist() -> None:
    section = text("CONTRIBUTING.md").split("## The way of a row\n")[1].split("\n## ")[0]
    files = re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE)
    assert len(files) == section.count("\n| `") <= 25
    assert len(set(files)) == len(files)
    assert [file for file in files if not (ROOT / "src/tidegate" / file).is_file()] == []


@pytest.mark.parametrize("folder", ["alerts", "caching", "engine", "models", "policies", "sampling", "spark"])
def test_the_docstring_of_a_large_folder_names_every_file(folder: str) -> None:
    docstring = text(f"src/tidegate/{folder}/__init__.py").split('"""')[1]
    assert not modules(folder) - set(re.findall(r"`(\w+)", docstring))


def test_no_file_contains_a_home_directory() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    files = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    home = re.compile(r"/(?:home|root|Users)/\w")
    assert not [name for name in files if (ROOT / name).is_file() and home.search(text(name))]
