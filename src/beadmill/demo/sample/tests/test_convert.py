import unittest

from units import MixedQuantities, UnknownUnit, convert


class ConvertTest(unittest.TestCase):
    def test_a_mile_in_kilometres(self):
        self.assertAlmostEqual(convert(1, "mile", "kilometre"), 1.609344)

    def test_a_pound_in_ounces(self):
        self.assertAlmostEqual(convert(1, "pound", "ounce"), 16)

    def test_there_and_back_again(self):
        self.assertAlmostEqual(convert(convert(12.5, "foot", "metre"), "metre", "foot"), 12.5)

    def test_an_unknown_unit_is_named(self):
        with self.assertRaisesRegex(UnknownUnit, "'furlong'"):
            convert(1, "furlong", "metre")

    def test_a_length_does_not_become_a_mass(self):
        with self.assertRaisesRegex(MixedQuantities, "metre measures length, gram measures mass"):
            convert(1, "metre", "gram")


if __name__ == "__main__":
    unittest.main()
