"""What the peers run: nothing. Imports nothing, because RQ's default worker imports it anew for each job."""


def nothing(number: int) -> int:
    return number
