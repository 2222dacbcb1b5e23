import unittest

from units import MixedQuantities, convert
from units.table import quantities

ABSOLUTE_ZERO = {"celsius": -273.15, "fahrenheit": -459.67, "kelvin": 0}


class TemperatureTest(unittest.TestCase):
    def test_water_boils_at_212_fahrenheit(self):
        self.assertAlmostEqual(convert(100, "celsius", "fahrenheit"), 212)

    def test_minus_40_is_the_same_on_both_scales(self):
        self.assertAlmostEqual(convert(-40, "fahrenheit", "celsius"), -40)

    def test_there_and_back_again(self):
        for scale in ABSOLUTE_ZERO:
            with self.subTest(scale=scale):
                self.assertAlmostEqual(convert(convert(21.5, scale, "kelvin"), "kelvin", scale), 21.5)

    def test_absolute_zero_itself_is_a_temperature(self):
        for scale, value in ABSOLUTE_ZERO.items():
            with self.subTest(scale=scale):
                self.assertAlmostEqual(convert(value, scale, "kelvin"), 0)

    def test_nothing_is_colder_than_absolute_zero(self):
        for scale, value in ABSOLUTE_ZERO.items():
            with self.subTest(scale=scale), self.assertRaisesRegex(ValueError, f"{scale} is below absolute zero"):
                convert(value - 0.01, scale, "kelvin")

    def test_a_temperature_does_not_become_a_length(self):
        with self.assertRaisesRegex(MixedQuantities, "celsius measures temperature, metre measures length"):
            convert(1, "celsius", "metre")

    def test_the_list_names_the_scales(self):
        self.assertEqual(quantities()["temperature"], ["celsius", "fahrenheit", "kelvin"])


if __name__ == "__main__":
    unittest.main()
