import unittest

from units.batch import BadLine, Measurement, read


class ReadTest(unittest.TestCase):
    def test_a_line_is_a_measurement(self):
        self.assertEqual(list(read(["12.5,foot,metre\n"])), [Measurement(1, 12.5, "foot", "metre")])

    def test_spaces_around_fields_do_not_matter(self):
        self.assertEqual(list(read([" 1 , mile , kilometre "])), [Measurement(1, 1.0, "mile", "kilometre")])

    def test_blank_lines_and_comments_are_left_out_but_counted(self):
        found = list(read(["# lengths\n", "\n", "1,inch,foot\n"]))
        self.assertEqual(found, [Measurement(3, 1.0, "inch", "foot")])

    def test_a_missing_field_is_a_bad_line(self):
        self.assertEqual(list(read(["1,inch\n"])), [BadLine(1, "expected value,source,target, found 2 fields")])

    def test_a_bad_number_does_not_stop_the_file(self):
        found = list(read(["many,inch,foot\n", "2,inch,foot\n"]))
        self.assertEqual(found, [BadLine(1, "'many' is not a number"), Measurement(2, 2.0, "inch", "foot")])


if __name__ == "__main__":
    unittest.main()
