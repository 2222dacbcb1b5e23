import io
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from units.__main__ import main


def batch(text):
    """Exit code, stdout and stderr of ``units batch`` on a file called in.txt with this text."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.txt")
        path.write_text(text, encoding="utf-8")
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["batch", str(path)])
        return code, out.getvalue(), err.getvalue().replace(folder + "/", "")


class BatchCommandTest(unittest.TestCase):
    def test_every_line_is_converted_in_order(self):
        self.assertEqual(
            batch("1,mile,kilometre\n2,pound,ounce\n"), (0, "1 mile = 1.60934 kilometre\n2 pound = 32 ounce\n", "")
        )

    def test_temperatures_work_too(self):
        self.assertEqual(batch("100,celsius,fahrenheit\n"), (0, "100 celsius = 212 fahrenheit\n", ""))

    def test_a_bad_line_is_named_and_the_rest_still_converted(self):
        code, out, err = batch("one,mile,kilometre\n3,foot,metre\n")
        self.assertEqual((code, out), (1, "3 foot = 0.9144 metre\n"))
        self.assertEqual(err, "units: in.txt, line 1: 'one' is not a number\n")

    def test_a_line_that_cannot_be_converted_is_named(self):
        self.assertEqual(batch("1,mile,gram\n")[2], "units: in.txt, line 1: mile measures length, gram measures mass\n")

    def test_an_empty_file_is_fine(self):
        self.assertEqual(batch(""), (0, "", ""))

    def test_a_missing_file_fails_with_one_line(self):
        err = io.StringIO()
        with redirect_stderr(err):
            self.assertEqual(main(["batch", "/nowhere/in.txt"]), 1)
        self.assertRegex(err.getvalue(), "^units: /nowhere/in.txt cannot be read: .*\n$")


if __name__ == "__main__":
    unittest.main()
