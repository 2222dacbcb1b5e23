import io
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from units.__main__ import main

LAB = """\
# oven, freezer, bench
350,fahrenheit,celsius
-80,celsius,kelvin
-300,celsius,kelvin

12.5,foot,metre
1,stone,gram
16,ounce,pound
"""


def run(*argv):
    """Exit code, lines of stdout and lines of stderr of one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(argv)
    return code, out.getvalue().splitlines(), err.getvalue().splitlines()


class EndToEndTest(unittest.TestCase):
    def test_a_lab_file_with_two_impossible_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "lab.txt")
            path.write_text(LAB, encoding="utf-8")
            code, out, err = run("batch", str(path))
        self.assertEqual(code, 1)
        self.assertEqual(
            out,
            [
                "350 fahrenheit = 176.667 celsius",
                "-80 celsius = 193.15 kelvin",
                "12.5 foot = 3.81 metre",
                "16 ounce = 1 pound",
            ],
        )
        self.assertEqual(
            [line.partition(", ")[2] for line in err],
            ["line 4: -300 celsius is below absolute zero", "line 7: no unit is called 'stone'"],
        )

    def test_the_commands_of_before_are_as_before(self):
        self.assertEqual(run("convert", "10", "mile", "kilometre"), (0, ["10 mile = 16.0934 kilometre"], []))
        self.assertEqual(
            run("list")[1][:2],
            [
                "length: foot, inch, kilometre, metre, mile",
                "mass: gram, kilogram, ounce, pound",
            ],
        )


if __name__ == "__main__":
    unittest.main()
