import io
import unittest
from contextlib import redirect_stderr, redirect_stdout

from units.__main__ import main


def run(*argv):
    """Exit code, stdout and stderr of one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(argv)
    return code, out.getvalue(), err.getvalue()


class CommandTest(unittest.TestCase):
    def test_convert_prints_both_sides(self):
        self.assertEqual(run("convert", "10", "mile", "kilometre"), (0, "10 mile = 16.0934 kilometre\n", ""))

    def test_an_unknown_unit_fails_with_one_line(self):
        self.assertEqual(run("convert", "1", "league", "metre"), (1, "", "units: no unit is called 'league'\n"))

    def test_list_groups_by_quantity(self):
        code, out, _ = run("list")
        self.assertEqual(code, 0)
        self.assertEqual(out.splitlines()[1], "mass: gram, kilogram, ounce, pound")


if __name__ == "__main__":
    unittest.main()
