import pytest

from big_service import BigService


def test_first_step():
    assert BigService().compute1(2) == 9


def test_nothing_costs_the_fixed_part():
    assert BigService().compute40(0) == 40


def test_calls_are_counted():
    service = BigService()
    service.compute3(1)
    service.compute4(1)
    assert service.calls == 2


@pytest.mark.parametrize("x", [1, 10, 250])
def test_a_dearer_parcel_never_costs_less(x):
    service = BigService()
    assert service.compute12(x + 1) > service.compute12(x)
