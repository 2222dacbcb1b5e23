from __future__ import annotations

import pytest

from beadmill.web.pages.markup import diff, markdown

PATCH = """diff --git a/units/old.py b/units/old.py
index 1..2 100644
--- a/units/old.py
+++ b/units/old.py
@@ -1,3 +1,3 @@ def f():
 same
-old <b>
+new <b>
 end
diff --git a/logo.png b/logo.png
new file mode 100644
Binary files /dev/null and b/logo.png differ
"""


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "![x](http://elsewhere.example/pixel.png)",
        "[x](data:text/html,<script>alert(1)</script>)",
        '<a href="#" onclick="alert(1)">x</a>',
        "`<svg onload=alert(1)>`",
    ],
)
def test_c81_markdown_of_strangers_is_text_with_harmless_marks(hostile: str) -> None:
    made = str(markdown(hostile))
    for refused in ("<script", "<img", "<svg", 'href="javascript', 'href="data', '<a href="#"'):
        assert refused not in made


def test_names_with_underscores_are_not_emphasised() -> None:
    assert str(markdown("see units/__main__.py and *this*")) == "<p>see units/__main__.py and <em>this</em></p>\n"


def test_headings_go_down_one_by_one_below_those_of_the_page() -> None:
    made = str(markdown("# a\n### b\n## c\n# d"))
    assert made == "<h3>a</h3>\n<h4>b</h4>\n<h4>c</h4>\n<h3>d</h3>\n"


def test_chinese_text_and_tables_stay_whole() -> None:
    made = str(markdown("| 列 | 值 |\n|---|---|\n| 温度 | 一百 |\n"))
    assert ("<th>列</th>" in made, "<td>一百</td>" in made) == (True, True)


def test_a_patch_is_read_by_file_with_its_line_numbers() -> None:
    first, second = diff(PATCH)
    assert (first.path, first.added, first.removed) == ("units/old.py", 1, 1)
    numbers = [(line.sign, line.old, line.new) for line in first.lines]
    assert numbers == [("@", None, None), (" ", 1, 1), ("-", 2, None), ("+", None, 2), (" ", 3, 3)]
    assert (second.path, second.note) == ("logo.png", "new file mode 100644")


def test_code_in_a_patch_is_escaped() -> None:
    assert "<b>" not in "".join(str(line.html) for line in diff(PATCH)[0].lines)


def test_no_patch_is_no_file() -> None:
    assert diff("") == ()
