"""Generate the input of the example pipeline: ten minutes of auctions and of bids on them."""  # noqa: INP001

import csv
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
FILE = 150  # seconds per file


def write(name: str, header: list[str], rows: list[tuple[float, list[object]]]) -> None:
    """Write rows to files by their time in seconds, in order."""
    (HERE / name).mkdir(exist_ok=True)
    for number in range(4):
        span = range(number * FILE, (number + 1) * FILE)
        with (HERE / name / f"{number}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(row for second, row in rows if int(second) in span)


def stamp(second: float) -> str:
    """A time in the format of the files."""
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def main() -> None:
    """An auction opens every two seconds; most bids are placed soon after, a few up to three minutes later."""
    draw = random.Random(7)  # noqa: S311 - the same files every time
    auctions: list[tuple[float, list[object]]] = []
    bids: list[tuple[float, list[object]]] = []
    for auction in range(1, 301):
        opened, reserve = 2.0 * auction - 2, draw.randrange(10, 200)
        auctions.append((opened, [auction, stamp(opened), draw.choice("abcdefgh"), reserve]))
        for _ in range(draw.randrange(8)):
            placed = opened + min(draw.expovariate(1 / 45), 180)
            bids.append(
                (placed, [auction, stamp(placed), draw.randrange(1000), reserve + draw.randrange(-9, 90)])
            )
    write("auctions", ["auction", "opened_at", "seller", "reserve"], auctions)
    write("bids", ["auction", "placed_at", "bidder", "price"], sorted(bids))


if __name__ == "__main__":
    main()
