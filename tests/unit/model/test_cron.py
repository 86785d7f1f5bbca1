from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter

from lanes import THOROUGH
from prony.model.cron import parse_cron, zone_of

PARIS = ZoneInfo("Europe/Paris")
UTC_ZONE = ZoneInfo("UTC")


def walls(text: str, after: str, count: int, zone: ZoneInfo = PARIS) -> list[str]:
    """Return the next due times as the wall of the zone shows them, with its offset."""
    begin = datetime.fromisoformat(after).replace(tzinfo=zone)
    return [f"{due.astimezone(zone):%m-%d %H:%M %z}" for due in islice(parse_cron(text).dues(begin, zone), count)]


# Against another program that computes the same


def expression(chance: random.Random) -> str:
    def field(low: int, high: int) -> str:
        first, last = sorted(chance.sample(range(low, high + 1), 2))
        step = chance.randint(1, high - low)
        return chance.choice(
            ["*", str(first), f"*/{step}", f"{first}-{last}/{chance.randint(1, 5)}", f"{first},{last}"]
        )

    # Where both days are written, one of them as a step of *, the two programs mean different things by it.
    day = chance.choice(["*", str(chance.randint(1, 28)), "1-15", "15,31"])
    weekday = chance.choice(["*", str(chance.randint(0, 7)), "mon-fri", "sat,sun", "5-7"])
    return " ".join([field(0, 59), field(0, 23), day, field(1, 12), weekday])


@pytest.mark.scaled
def test_hundreds_of_expressions_are_due_when_croniter_says() -> None:
    chance = random.Random(5)
    for _ in range(1000 if THOROUGH else 300):
        text = expression(chance)
        begin = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randint(0, 10**9))
        theirs = croniter(text, begin)
        ours = list(islice(parse_cron(text).dues(begin, UTC_ZONE), 4))
        assert ours == [theirs.get_next(datetime) for _ in range(4)], (text, begin)


@pytest.mark.parametrize(
    ("nickname", "text"),
    [
        ("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"),
    ],
)  # fmt: skip
def test_a_nickname_is_its_expression(nickname: str, text: str) -> None:
    assert parse_cron(nickname) == parse_cron(text)


# Days


def test_a_day_and_a_weekday_that_are_both_written_are_two_ways_to_be_due() -> None:
    assert walls("0 0 13 * fri", "2026-03-01", 4) == [
        "03-06 00:00 +0100", "03-13 00:00 +0100", "03-20 00:00 +0100", "03-27 00:00 +0100",
    ]  # fmt: skip
    assert walls("0 0 13 * fri", "2026-01-10", 2) == ["01-13 00:00 +0100", "01-16 00:00 +0100"]


def test_a_step_of_any_day_with_a_weekday_must_both_hold_as_in_vixie_cron() -> None:
    assert walls("0 0 */2 * mon", "2026-06-01", 3) == ["06-15 00:00 +0200", "06-29 00:00 +0200", "07-13 00:00 +0200"]


def test_seven_is_sunday_and_a_range_may_end_on_it() -> None:
    assert parse_cron("0 0 * * 7") == parse_cron("0 0 * * sun") == parse_cron("0 0 * * 0")
    assert parse_cron("0 0 * * fri-sun") == parse_cron("0 0 * * 0,5,6")


def test_a_leap_day_is_found_across_a_century_that_has_none() -> None:
    found = parse_cron("0 0 29 feb *").after(datetime(2096, 3, 1, tzinfo=UTC), UTC_ZONE)
    assert found == datetime(2104, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30-31 feb *"])
def test_what_is_never_due_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="never occurs"):
        parse_cron(text)


def test_a_date_that_never_comes_with_a_weekday_that_does_is_due() -> None:
    assert walls("0 0 30 2 mon", "2026-02-01", 2) == ["02-02 00:00 +0100", "02-09 00:00 +0100"]


# Clocks that are changed


def test_a_time_in_the_hour_that_is_skipped_is_due_once_at_the_next_minute_there_is() -> None:
    expected = ["03-28 02:30 +0100", "03-29 03:00 +0200", "03-30 02:30 +0200"]
    assert walls("30 2 * * *", "2026-03-28", 3) == expected
    assert walls("*/15 2 * * *", "2026-03-28T02:45", 2) == ["03-29 03:00 +0200", "03-30 02:00 +0200"]


def test_a_time_in_the_hour_that_comes_twice_is_due_once() -> None:
    expected = ["10-24 02:30 +0200", "10-25 02:30 +0200", "10-26 02:30 +0100"]
    assert walls("30 2 * * *", "2026-10-24", 3) == expected


def test_what_is_due_every_hour_is_due_in_both_of_them() -> None:
    assert walls("30 * * * *", "2026-10-25T01:00", 4) == [
        "10-25 01:30 +0200", "10-25 02:30 +0200", "10-25 02:30 +0100", "10-25 03:30 +0100",
    ]  # fmt: skip
    second = datetime(2026, 10, 25, 2, 40, tzinfo=PARIS, fold=1)
    assert parse_cron("*/30 * * * *").after(second, PARIS) == datetime(2026, 10, 25, 2, tzinfo=UTC)


def test_a_zone_may_be_set_by_half_an_hour_and_skip_a_whole_day() -> None:
    lord_howe, apia = ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Pacific/Apia")
    assert walls("15 2 * * *", "2026-10-03T12:00", 2, lord_howe) == ["10-04 02:30 +1100", "10-05 02:15 +1100"]
    assert walls("0 12 * * *", "2011-12-29", 3, apia) == ["12-29 12:00 -1000", "12-31 00:00 +1400", "12-31 12:00 +1400"]


def test_every_due_instant_is_after_the_one_before() -> None:
    for text in ("*/7 * * * *", "30 2 * * *", "15,45 1-3 * * *"):
        dues = list(islice(parse_cron(text).dues(datetime(2026, 3, 28, tzinfo=UTC), PARIS), 3000))
        assert all(one < two for one, two in pairwise(dues))


# What cannot be understood


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("0 0 0 * * *", "five fields"),
        ("@reboot", "five fields"),
        ("60 * * * *", "the minute is from 0 to 59: not 60"),
        ("* 24 * * *", "the hour is from 0 to 23"),
        ("* * 0 * *", "the day of the month is from 1 to 31"),
        ("* * * 13 *", "the month is from 1 to 12"),
        ("* * * * 8", "the day of the week is from 0 to 7"),
        ("* * * foo *", "or one of jan"),
        ("*/0 * * * *", "at least 1"),
        ("5/15 * * * *", "a step follows a range"),
        ("30-10 * * * *", "ends before it begins"),
        ("1,,2 * * * *", "is not a valid minute"),
        ("-1 * * * *", "is not a valid minute"),
        ("١ * * * *", "is not a number"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_cron(text)


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "", "/etc/localtime"])
def test_a_zone_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone is called"):
        zone_of(name)
