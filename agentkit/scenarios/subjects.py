"""What the made-up project is about: the depot of a bicycle hire, module by module."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """One module: its name, what it is for, the things in it (singular and plural), their unit, and its size in parts.

    `constants` are name, value and meaning; the first three are also known as LOW, HIGH and LIMIT.
    """

    name: str
    about: str
    things: tuple[tuple[str, str], ...]
    unit: str
    parts: int
    constants: tuple[tuple[str, int, str], ...]


SUBJECTS: tuple[Subject, ...] = (
    Subject(
        "tariffs",
        "What riding costs: by the minute, by the day, and with a pass.",
        (("fare", "fares"), ("pass_price", "pass_prices")),
        "cents",
        16,
        (
            ("SHORT_RIDE", 250, "Cents up to which a ride counts as short."),
            ("LONG_RIDE", 1_800, "Cents from which a ride counts as long."),
            ("DAY_CAP", 2_400, "Cents that one bicycle costs at most on one day."),
            ("UNLOCK_FEE", 100, "Cents that are due before the first metre."),
        ),
    ),
    Subject(
        "rentals",
        "Rides from the first minute to the last, and what is still out.",
        (("rental", "rentals"), ("ride", "rides")),
        "minutes",
        22,
        (
            ("SHORT", 20, "Minutes."),
            ("LONG", 240, "Minutes; a longer one is asked about."),
            ("FORGOTTEN", 2_880, "Minutes after which a bicycle counts as left somewhere."),
        ),
    ),
    Subject(
        "deposits",
        "Money that is held while a bicycle is out.",
        (("deposit", "deposits"),),
        "cents",
        9,
        (
            ("SMALL_DEPOSIT", 2_000, "Cents for a city bicycle."),
            ("LARGE_DEPOSIT", 9_000, "Cents for a cargo bicycle."),
            ("MOST_HELD", 30_000, "Cents that are held from one member at most."),
        ),
    ),
    Subject(
        "repairs",
        "Work in the shop: what was done, how long it took, what it cost.",
        (("repair", "repairs"), ("estimate", "estimates")),
        "cents",
        24,
        (
            ("QUICK_JOB", 1_500, "Cents; a cheaper one is done while the member waits."),
            ("BIG_JOB", 12_000, "Cents; a dearer one needs a second look."),
            ("WRITE_OFF", 45_000, "Cents at which a repair no longer pays."),
            ("BENCHES", 4, "Work benches in the shop."),
        ),
    ),
    Subject(
        "spares",
        "Spare parts: tubes, chains, brake pads, and how many are left.",
        (("spare", "spares"), ("order", "orders")),
        "pieces",
        18,
        (
            ("FEW", 12, "Pieces at which the shelf looks empty."),
            ("PLENTY", 400, "Pieces that no season has ever needed."),
            ("SHELF", 600, "Pieces that fit on the shelf."),
        ),
    ),
    Subject(
        "stock",
        "Bicycles by kind and by state.",
        (("bicycle", "bicycles"), ("frame", "frames")),
        "bicycles",
        14,
        (
            ("SMALL_FLEET", 25, "Bicycles."),
            ("LARGE_FLEET", 250, "Bicycles."),
            ("ROOM", 320, "Bicycles that the depot can hold."),
        ),
    ),
    Subject(
        "suppliers",
        "Who delivers, at what price, and how late.",
        (("delivery", "deliveries"), ("quote", "quotes")),
        "cents",
        20,
        (
            ("SMALL_ORDER", 5_000, "Cents below which postage is charged."),
            ("LARGE_ORDER", 80_000, "Cents from which the better price holds."),
            ("CREDIT", 250_000, "Cents that may be open with one supplier."),
        ),
    ),
    Subject(
        "invoices",
        "Bills to members and companies, with tax.",
        (("invoice", "invoices"), ("reminder", "reminders")),
        "cents",
        26,
        (
            ("SMALL_BILL", 1_000, "Cents; a smaller one waits for the next month."),
            ("LARGE_BILL", 50_000, "Cents; a larger one is signed twice."),
            ("OPEN_LIMIT", 90_000, "Cents that one member may owe."),
            ("TAX_PERCENT", 19, "Percent that are added to the net amount."),
        ),
    ),
    Subject(
        "stations",
        "Places to take and leave a bicycle, and how full they are.",
        (("station", "stations"),),
        "bicycles",
        10,
        (
            ("NEARLY_EMPTY", 3, "Bicycles."),
            ("NEARLY_FULL", 18, "Bicycles."),
            ("PLACES", 22, "Places of a usual station."),
        ),
    ),
    Subject(
        "transfers",
        "Vans that carry bicycles from full stations to empty ones.",
        (("transfer", "transfers"), ("trip", "trips")),
        "metres",
        16,
        (
            ("NEAR", 900, "Metres that are walked."),
            ("FAR", 12_000, "Metres that need a van of its own."),
            ("RANGE", 60_000, "Metres that a van goes on one charge."),
        ),
    ),
    Subject(
        "members",
        "Members, their passes and their points.",
        (("member", "members"), ("bonus", "bonuses")),
        "points",
        18,
        (
            ("BEGINNER", 50, "Points."),
            ("REGULAR", 900, "Points."),
            ("MOST_POINTS", 5_000, "Points; more are not counted."),
        ),
    ),
    Subject(
        "refunds",
        "Money that goes back, and why.",
        (("refund", "refunds"),),
        "cents",
        12,
        (
            ("PETTY", 300, "Cents that go back without a question."),
            ("SERIOUS", 7_500, "Cents that are looked into."),
            ("MOST_BACK", 20_000, "Cents that go back at once at most."),
        ),
    ),
    Subject(
        "shifts",
        "Who works when, in minutes.",
        (("shift", "shifts"), ("pause", "pauses")),
        "minutes",
        20,
        (
            ("SHORT_SHIFT", 180, "Minutes."),
            ("LONG_SHIFT", 480, "Minutes."),
            ("LONGEST_SHIFT", 600, "Minutes that nobody may exceed."),
        ),
    ),
    Subject(
        "reports",
        "Figures for the end of the month.",
        (("figure", "figures"), ("column", "columns")),
        "cents",
        22,
        (
            ("MINOR", 10_000, "Cents below which a figure is left out."),
            ("MAJOR", 500_000, "Cents from which a figure gets a line of its own."),
            ("ROUNDED", 1_000_000, "Cents above which whole hundreds are enough."),
        ),
    ),
)
"""Fourteen; with `base` the project has 15 modules."""
