"""Definitions in files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.importance import Categories, Column, Combined, Definition, DefinitionFile, Histogram
from tidegate.types import InputError

TOPICS = Categories("topic", {"politics": 5, "sports": 2}, default=1)


def test_json_and_toml(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TOPICS.to_dict()))
    assert DefinitionFile(tmp_path / "a.json").read().definition == TOPICS
    (tmp_path / "b.toml").write_text('kind = "histogram"\ncolumn = "age"\nedges = [0, 18]\nvalues = [3]')
    assert DefinitionFile(str(tmp_path / "b.toml")).read().definition == Histogram("age", [0, 18], [3])
    assert DefinitionFile(f"file://{tmp_path}/a.json").read().definition == TOPICS


def test_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("value,importance\npolitics,5\nsports,2\n")
    table = pa.table({"value": ["politics", "sports"], "importance": [5, 2]})
    pq.write_table(table, tmp_path / "b.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    for i in range(2):
        pq.write_table(table.slice(i, 1), folder / f"part-{i}.parquet")
    (folder / "_SUCCESS").touch()
    for path in (tmp_path / "a.csv", tmp_path / "b.parquet", folder):
        assert DefinitionFile(path, column="topic", default=1).read().definition == TOPICS


def test_a_change_is_detected_by_the_content(tmp_path: Path) -> None:
    file = DefinitionFile(tmp_path / "a.json")
    Path(file.path).write_text(json.dumps(TOPICS.to_dict()))
    known = file.read()
    Path(file.path).touch()
    assert file.read(known) is known
    Path(file.path).write_text(json.dumps("price"))
    assert file.read(known).definition == Column("price")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", None, ["a.json cannot be read", "give a JSON or TOML file"]),
        ("a.json", "{", ["a.json is not a definition"]),
        ("a.json", '{"kind": "categories"}', ["a.json is not a definition", "lacks 'column'"]),
        ("a.json", '{"kind": "expression", "sql": "x"}', ["Expression", "before the query starts"]),
        ("a.json", "[1, 2, 3]", ["a.json is not a definition"]),
        ("a.toml", "kind =", ["a.toml is not a definition"]),
        ("a.json", "[" * 100_000, ["a.json is not a definition"]),
        ("a.json", "[" * 500 + "1" + ",1]" * 500, ["a.json is not a definition"]),
        ("a.json", "1" * 5_000, ["a.json is not a definition"]),
        ("a.toml", ".".join(["a"] * 50_000) + " = 1", ["a.toml is not a definition", "more than 64 parts"]),
        ("a.csv", "value,worth\na,1\n", ["no column 'importance'", "value, worth"]),
        ("a.csv", "value,importance\na,1\na,2\n", ["a value is listed twice"]),
        ("a.csv", "value,importance\na,-1\n", ["the importance of 'a' is -1"]),
        ("a.csv", "", ["a.csv is not a definition"]),
        ("a.parquet", "not parquet", ["a.parquet is not a definition"]),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: str | None, words: list[str]) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    file = DefinitionFile(tmp_path / name, column=None if name.endswith(("json", "toml")) else "topic")
    with pytest.raises(InputError) as raised:
        file.read()
    for word in words:
        assert word in str(raised.value)


def test_a_simulation_reads_the_file_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(TOPICS.to_dict()))
    stream = {"key": [1, 1], "time": [0, 1], "topic": ["politics", "weather"], "price": [1, 2]}
    both = Combined("product", [DefinitionFile(tmp_path / "a.json"), "price"])
    assert tg.simulate(stream, stream, window=(9, 9), importance=both).importance == 5 + 2 + 2 + 2
    (tmp_path / "a.json").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        tg.simulate(stream, stream, window=(9, 9), importance=both)


def test_it_converts_to_a_dict_and_back(tmp_path: Path) -> None:
    file = DefinitionFile(tmp_path / "a.csv", column="topic", default=1)
    assert Definition.of(json.loads(json.dumps(file.to_dict()))) == file


def test_values_in_a_csv_file_stay_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("value,importance\n00501,9\n7,3\n")
    by_code = DefinitionFile(tmp_path / "a.csv", column="code", default=1).read().definition
    for codes, worths in ((["00501", "501", "7"], [9, 1, 3]), ([501, 7, 8], [9, 3, 1])):
        stream = {"key": [1, 1, 1], "time": [0, 1, 2], "code": codes}
        report = tg.simulate(stream, stream, window=(0, 0), importance=by_code)
        assert report.importance == sum(worths)
