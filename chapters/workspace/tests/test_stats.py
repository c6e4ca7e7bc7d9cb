import pytest

from stats import mean, median, percentile, running_total, spread

PRICES = [4.0, 16.0, 2.0, 8.0]


def test_mean():
    assert mean(PRICES) == 7.5


def test_mean_of_nothing():
    with pytest.raises(ValueError, match="no values"):
        mean([])


def test_median_of_an_odd_number_of_prices():
    assert median([9.0, 1.0, 5.0]) == 5.0


def test_median_of_an_even_number_of_prices():
    assert median(PRICES) == 6.0


def test_spread():
    assert spread(PRICES) == 14.0


def test_percentile_is_one_of_the_prices():
    assert percentile(PRICES, 50) == 4.0
    assert percentile(PRICES, 100) == 16.0


def test_percentile_out_of_range():
    with pytest.raises(ValueError, match="at most 100"):
        percentile(PRICES, 101)


def test_running_total():
    assert running_total([1.0, 2.5]) == [1.0, 3.5]
