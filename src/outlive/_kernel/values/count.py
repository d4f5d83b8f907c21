"""How many there are, if counting ended somewhere."""

from __future__ import annotations

import msgspec


class Count(msgspec.Struct, frozen=True):
    """How many there are; `str(count)` is `42`, or `10,000+` if counting stopped there. It compares as its number."""

    count: int
    at_least: bool = False
    """Whether counting stopped at its limit: there are so many, and maybe more."""

    def __int__(self) -> int:
        return self.count

    def __index__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return bool(self.count)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Count):
            return (self.count, self.at_least) == (other.count, other.at_least)
        return self.count == other

    def __hash__(self) -> int:
        return hash(self.count)

    def __lt__(self, other: Count | int) -> bool:
        return self.count < int(other)

    def __le__(self, other: Count | int) -> bool:
        return self.count <= int(other)

    def __gt__(self, other: Count | int) -> bool:
        return self.count > int(other)

    def __ge__(self, other: Count | int) -> bool:
        return self.count >= int(other)

    def __str__(self) -> str:
        return f"{self.count:,}+" if self.at_least else f"{self.count:,}"

    def __repr__(self) -> str:
        return f"<Count {self}>"
