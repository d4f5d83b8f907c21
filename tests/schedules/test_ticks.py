"""When schedules tick: time zones, spans, exclusions, a start and an end."""

from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

import pytest
from msgspec.structs import replace

import outlive
from outlive._features.schedules.in_code import filled
from outlive._features.schedules.ticks import Ticks, jitter_of
from outlive._kernel.model.instant import instant_of, microseconds_of
from outlive.errors import InvalidArgumentError

YEAR = timedelta(days=366)


def ticks_of(schedule: outlive.types.ScheduleSpec, start: datetime, end: datetime) -> list[str]:
    """The ticks in a range, as people write them in UTC."""
    found = Ticks(schedule).between(microseconds_of(start), microseconds_of(end), 5_000)
    return [instant_of(tick).strftime("%m-%d %H:%M") for tick in found]


def utc(month: int, day: int, hour: int = 0, *, year: int = 2026) -> datetime:
    """An instant."""
    return datetime(year, month, day, hour, tzinfo=UTC)


def test_a_repeated_time_of_the_day_ticks_once() -> None:
    """At 01:30 in New York, in the night in which 01:00 to 02:00 comes twice: the first time."""
    nightly = outlive.cron("30 1 * * *", tz="America/New_York")

    assert ["10-31 05:30", "11-01 05:30", "11-02 06:30"] == ticks_of(nightly, utc(10, 31), utc(11, 3))


def test_a_time_in_the_gap_ticks_right_after_it() -> None:
    """At 02:30 in New York, in the night in which 02:00 to 03:00 is left out: at 03:00."""
    nightly = outlive.cron("30 2 * * *", tz="America/New_York")

    assert ["03-07 07:30", "03-08 07:00", "03-09 06:30"] == ticks_of(nightly, utc(3, 7), utc(3, 10))


def test_an_expression_with_a_star_follows_the_clock_on_the_wall() -> None:
    """An expression that begins with a star ticks in both of two equal hours, and not in an hour that is left out."""
    often = outlive.cron("*/30 1-2 * * *", tz="America/New_York")

    assert 6 == len(ticks_of(often, utc(11, 1, 4), utc(11, 1, 12)))
    assert ["03-08 06:00", "03-08 06:30"] == ticks_of(often, utc(3, 8, 4), utc(3, 8, 12))


def test_a_tick_after_an_instant_in_the_repeated_hour_is_never_before_it() -> None:
    """cronsim would begin with the first of the two equal hours."""
    nightly = outlive.cron("50 1 * * *", tz="America/New_York")
    second_half_past_one = utc(11, 1, 6) + timedelta(minutes=40)

    assert "11-02 06:50" == ticks_of(nightly, second_half_past_one, utc(11, 4))[0]


def test_spans_are_counted_from_1970_or_from_the_start() -> None:
    """Whenever a worker was started, all of them agree. [CA-S1 FE-T2]"""
    spans = outlive.every(minutes=25)
    own = outlive.every(hours=5, start=utc(6, 1, 1))

    assert ["06-01 00:00", "06-01 00:25", "06-01 00:50"] == ticks_of(spans, utc(6, 1), utc(6, 1, 1))
    assert ["06-01 01:00", "06-01 06:00", "06-01 11:00"] == ticks_of(own, utc(5, 1), utc(6, 1, 12))


def test_several_rules_and_exclusions_make_a_calendar() -> None:
    """Each instant once; not on a day or in a span that is excluded; from the start on, and before the end.
    [CA-S2 FE-T1]
    """
    calendar = outlive.cron(
        "0 6 * * 1-5",
        "0 9 * * 6",
        "0 9 * 12 6",
        tz="Europe/Stockholm",
        exclude=["* * 24-26 12 *", date(2026, 12, 31)],
        start=utc(12, 19),
        end=datetime(2027, 1, 2, 8, tzinfo=UTC),
    )

    found = ticks_of(calendar, utc(12, 1), datetime(2027, 2, 1, tzinfo=UTC))

    assert found == ["12-19 08:00", *(f"12-{day} 05:00" for day in (21, 22, 23, 28, 29, 30)), "01-01 05:00"]


def test_the_last_ticks_of_a_long_gap_are_found_from_its_end() -> None:
    """After ten years of a tick a minute that costs no more than after an hour."""
    often = Ticks(outlive.cron("* * * * *", tz="Asia/Kolkata"))
    now = microseconds_of(utc(6, 1, 12))

    found, later = often.last(microseconds_of(utc(6, 1, year=2016)), now, 3)

    assert ["11:57", "11:58", "11:59", "12:00"] == [instant_of(tick).strftime("%H:%M") for tick in found]
    assert later == now + 60_000_000


def test_the_last_ticks_of_a_sparse_schedule_are_found_however_far_back() -> None:
    """An hour from the end there is none, and there are more than one looks at from the beginning."""
    daily = Ticks(outlive.cron("0 6 * * *"))
    now = microseconds_of(utc(6, 1, 12))

    found, later = daily.last(microseconds_of(utc(1, 1)), now, 3)

    assert ["05-29", "05-30", "05-31", "06-01"] == [instant_of(tick).strftime("%m-%d") for tick in found]
    assert later == microseconds_of(utc(6, 2, 6))


def test_a_schedule_that_never_ticks_again_says_so() -> None:
    """A schedule that is over has no next tick, and neither has one of an earlier release whose ticks are all
    excluded."""
    over = outlive.every(hours=1, end=utc(1, 1))
    excluded = replace(outlive.cron("0 6 24 12 *"), exclude=("0 6 * 12 *",))

    assert (None, None) == (Ticks(over).after(microseconds_of(utc(1, 1))), Ticks(excluded).after(0))


@pytest.mark.parametrize("exclude", ["* * * * 6,0", "* 0-23 * * 6,0", "0-59 * * * 6,0"])
def test_a_long_exclusion_is_passed_however_many_ticks_are_in_it(exclude: str) -> None:
    """A weekend has 172,800 seconds; on Monday the schedule goes on."""
    often = outlive.every(seconds=1, exclude=[exclude])

    assert microseconds_of(utc(11, 23)) == Ticks(often).after(microseconds_of(utc(11, 21)) - 1)


def test_exclusions_of_a_whole_month_cost_little() -> None:
    """They are passed day by day, not minute by minute: the loop of a worker stands still meanwhile."""
    december = Ticks(outlive.cron("* * * * *", exclude=["* * * 1-11 *"], tz="Europe/Stockholm"))

    assert microseconds_of(utc(11, 30, 23)) == december.after(microseconds_of(utc(1, 1)))


def test_a_schedule_of_which_everything_is_excluded_is_refused() -> None:
    """It would be stored, and never start anything."""
    with pytest.raises(InvalidArgumentError, match="leaves no tick"):
        outlive.every(days=30, exclude=["* * * * *"], start=utc(1, 1), end=utc(2, 1))


@pytest.mark.parametrize("exclude", ["* 0-2 * * *", "* * * * 0", "30 1 * * *"])
@pytest.mark.parametrize(
    ("zone", "begins"),
    [
        ("America/New_York", (utc(3, 8), utc(11, 1))),
        ("Australia/Lord_Howe", (utc(4, 4), utc(10, 3))),
        ("America/Havana", (utc(3, 8), utc(11, 1))),
    ],
)
def test_exclusions_are_exact_when_the_clocks_change(zone: str, begins: tuple[datetime, ...], exclude: str) -> None:
    """Around a change of the clocks exactly those ticks are left in whose minute the exclusion does not tick."""
    often = outlive.every(minutes=10, tz=zone)
    for begin in begins:
        end = begin + timedelta(hours=30)
        excluded = set(ticks_of(outlive.cron(exclude, tz=zone), begin, end))
        wanted = [tick for tick in ticks_of(often, begin, end) if tick not in excluded]

        assert wanted == ticks_of(replace(often, exclude=(exclude,)), begin, end)


def test_jitter_is_always_the_same_for_a_name() -> None:
    """The jitter of a name is always the same, and different names spread over the minute."""
    spread = outlive.every(hours=1, jitter=60)
    found = [jitter_of(spread, f"digest-{number}") for number in range(100)]

    assert found == [jitter_of(spread, f"digest-{number}") for number in range(100)]
    assert all(0 <= each <= 60_000_000 for each in found)
    assert 95 < len(set(found))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("61 * * * *", "Bad minute"),
        ("0 0 6 * * 1-5 *", "five fields"),
        ("60 0 6 * * 1-5", "Bad second"),
        ("0 0 31 2 *", "Bad day-of-month"),
        ("* * */20 * 1L", "never matches"),
        ("every day", "five fields"),
    ],
)
def test_an_expression_that_cannot_work_is_refused(expression: str, said: str) -> None:
    """When it is written, with what is wrong with it."""
    with pytest.raises(InvalidArgumentError, match=said):
        outlive.cron(expression)


def test_an_expression_of_six_fields_ticks_at_its_seconds() -> None:
    """The first of six fields names the seconds of each minute that the other five name. [CA-S2 FE-T1]"""
    often = outlive.cron("*/20 30 6 * * *", tz="Europe/Stockholm")
    found = Ticks(often).between(microseconds_of(utc(6, 1)), microseconds_of(utc(6, 2)), 10)

    assert [f"{instant_of(tick):%H:%M:%S}" for tick in found] == ["04:30:00", "04:30:20", "04:30:40"]
    assert Ticks(often).after(found[1]) == found[2]


def test_seconds_of_a_time_in_the_gap_are_counted_from_the_end_of_the_gap() -> None:
    """At 02:30:15 in New York, in the night in which 02:00 to 03:00 is left out: at 03:00:15."""
    nightly = outlive.cron("15 30 2 * * *", tz="America/New_York")
    tick = Ticks(nightly).after(microseconds_of(utc(3, 8)))

    assert tick is not None
    assert instant_of(tick) == utc(3, 8, 7) + timedelta(seconds=15)


def test_seconds_cannot_be_excluded() -> None:
    """An exclusion of six fields is refused: minutes are the shortest span that is excluded."""
    with pytest.raises(InvalidArgumentError, match="give five fields"):
        outlive.every(seconds=1, exclude=["0 * * * * *"])


def test_a_name_for_an_expression_is_that_expression() -> None:
    """A name such as `@hourly` stands for its expression, as in crontabs."""
    assert ("0 * * * *",) == outlive.cron("@hourly").cron
    assert ("0 0 * * *",) == outlive.cron(" @Daily ").cron


@pytest.mark.parametrize("tz", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_a_schedule_that_starts_on_the_last_day_of_the_calendar_has_no_ticks_behind_it(tz: str) -> None:
    """A row like this one must not stop a worker, nor a list of schedules."""
    last = datetime.max.replace(tzinfo=UTC)
    nightly = outlive.cron("0 6 * * *", tz=tz, start=last)

    assert Ticks(nightly).after(microseconds_of(utc(1, 1))) is None


def test_the_time_of_a_tick_may_stand_anywhere_in_the_arguments() -> None:
    """The time of a tick is filled in beside texts that look like its mark, in any kind of list or map."""
    texts = ["$tick", 'a,"$tick":', '{"$tick":', "\\"]
    names = {text: text for text in texts if text != "$tick"}
    args = {"texts": texts, "names": MappingProxyType(names), "times": (outlive.tick.date, [{"at": outlive.tick}])}
    schedule = outlive.every(hours=1, args=args)

    assert schedule.arguments == {
        "texts": texts,
        "names": names,
        "times": [{"$tick": "date"}, [{"at": {"$tick": "instant"}}]],
    }
    assert filled(schedule.arguments, 0, "UTC")["times"] == ["1970-01-01", [{"at": "1970-01-01T00:00:00Z"}]]
    with pytest.raises(TypeError, match=r"the key '\$tick' is not yours to use"):
        outlive.every(hours=1, args={**args, "mine": [{"$tick": "date"}]})
