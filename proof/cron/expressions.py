"""Expressions to try: those that people write, those that are hard, and random ones from a seed."""

from __future__ import annotations

import random

USUAL = [
    "* * * * *", "*/5 * * * *", "*/15 * * * *", "*/7 * * * *", "0 * * * *", "30 * * * *", "*/30 * * * *", "0 */2 * * *",
    "0 */6 * * *", "15 */3 * * *", "0 0 * * *", "5 0 * * *", "30 0 * * *", "59 23 * * *", "30 1 * * *", "0 1 * * *",
    "30 2 * * *", "0 2 * * *", "15 2 * * *", "45 2 * * *", "0 3 * * *", "30 3 * * *", "0 6 * * 1-5", "0 9 * * 6",
    "10,30 2 * * *", "0,15,30,45 1-3 * * *", "*/20 1-3 * * *", "0 0-23/2 * * *", "0 0-23 * * *", "0-59 2 * * *",
    "0-59/10 0-3 * * *", "30 0,1,2,3 * * *", "* 2 * * *", "* 0 * * *", "* 23 * * *", "*/10 0 * * *",
    "*/30 23,0,1 * * *",
    "0 12 1 * *", "0 0 1 * *", "0 0 L * *", "30 2 LW * *", "0 0 31 * *", "0 0 29 2 *", "0 2 * 3 0", "30 2 * 3 SUN",
    "30 1 * 10,11 SUN", "30 2 * * SUN#2", "30 1 * * SUN#1", "30 2 * * 0L", "30 1 * * 7L", "0 2 * * 7", "0 0 13 * 5",
    "0 0 13 * FRI", "0 0 */2 * 1", "0 0 1-7 * MON", "0 0 * */3 *", "0 0 1 JAN *", "0 0 * JAN-MAR MON-FRI",
    "0 3 15,L * *",
    "0 0 * * 1#5", "15 14 1 * *", "0 22 * * 1-5", "23 0-20/2 * * *", "5 4 * * SUN", "0 0,12 1 */2 *", "0 4 8-14 * *",
    "*/59 * * * *", "1-59/2 * * * *", "0 1-23/2 * * *", "*/1 */1 * * *", "0 0 30 * *", "0 0 1,15 * 3", "*/45 2 * * SUN",
    "0 30 2 * * *", "15,45 30 1 * * *", "*/20 */30 1-2 * * *", "59 59 * * * *", "10-50/20 15 2,3 * * SUN",
    "30 0 0 L * *",
]  # fmt: skip


def expressions(count: int, seed: int) -> list[str]:
    """So many expressions: the usual ones, then random ones."""
    rng = random.Random(seed)
    found = dict.fromkeys(USUAL[:count])
    while len(found) < count:
        found[_random(rng)] = None
    return list(found)


def _random(rng: random.Random) -> str:
    day, weekday = _field(rng, 1, 28), _field(rng, 0, 7)
    if rng.random() < 0.6:
        day = "*"
    if rng.random() < 0.7:
        weekday = "*"
    if rng.random() < 0.05:
        day = rng.choice(["L", "LW", "L,10"])
    if rng.random() < 0.05:
        weekday = rng.choice(["SUN#1", "MON#2", "0L", "5L", "SAT,SUN"])
    month = "*" if rng.random() < 0.8 else _field(rng, 1, 12)
    hour = _field(rng, 0, 23) if rng.random() < 0.4 else _field(rng, 0, 3)
    second = f"{_field(rng, 0, 59)} " if rng.random() < 0.1 else ""
    return f"{second}{_field(rng, 0, 59)} {hour} {day} {month} {weekday}"


def _field(rng: random.Random, least: int, most: int) -> str:
    kind = rng.random()
    one = rng.randint(least, most)
    if kind < 0.1:
        return "*"
    if kind < 0.2:
        return f"*/{rng.randint(1, max(2, most // 2))}"
    if kind < 0.6:
        return str(one)
    if kind < 0.75:
        return ",".join(map(str, sorted({one, *(rng.randint(least, most) for _ in range(2))})))
    other = rng.randint(one, most)
    return f"{one}-{other}" if kind < 0.9 else f"{one}-{other}/{rng.randint(1, 5)}"
