"""Count the lines of code of the package by folder, without docstrings, comments and blank lines.

Run by `make lines`. The fewer lines a change needs, the less there is to read and to keep right.
"""

from __future__ import annotations

import ast
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "src/tidegate"
_NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def count_code_lines(path: Path) -> int:
    """The lines of a file that hold code. A string that stands alone is a docstring."""
    tree = ast.parse(path.read_bytes())
    docstrings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    with path.open("rb") as file:
        code = {
            line
            for token in tokenize.tokenize(file.readline)
            if token.type not in _NO_CODE
            for line in range(token.start[0], token.end[0] + 1)
        }
    return len(code - docstrings)


def lines_by_folder(package: Path = PACKAGE) -> Counter[str]:
    """The lines of code of each folder of the package, with its subfolders; a module stands for itself."""
    lines: Counter[str] = Counter()
    for pattern in ("*.py", "*.pyi"):
        for path in package.rglob(pattern):
            lines[path.relative_to(package).parts[0]] += count_code_lines(path)
    return lines


def main() -> None:
    """Print the lines of code of each folder, the largest first, and their total."""
    lines = lines_by_folder()
    for name, count in lines.most_common():
        print(f"{count:7,}  {name}")  # noqa: T201 - it prints
    print(f"{lines.total():7,}  total")  # noqa: T201 - it prints


if __name__ == "__main__":
    main()
