"""The report as a browser shows it, light and dark: each plot is drawn, and no label is cut off."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from jobline_pipeline.report.page import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
THEMES = {"light": "1", "dark": "0"}
INK = {"light": "rgb(93, 104, 121)", "dark": "rgb(154, 165, 181)"}
PLOTS = 4


@pytest.fixture(scope="module")
def report(answers, tmp_path_factory):
    """The page of the simulated history."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(answers), encoding="utf-8")
    return path


def browse(report, theme, *what, window="1280,2600"):
    """Returns what the browser prints; a script that fails is printed as well."""
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--enable-logging=stderr", "--virtual-time-budget=8000", f"--window-size={window}",
        f"--user-data-dir={report.parent / theme}",
        f"--blink-settings=preferredColorScheme={THEMES[theme]}", *what, report.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
@pytest.mark.parametrize("theme", THEMES)
def test_plots_are_drawn_in_the_colours_of_the_theme(report, theme):
    """With axes, marks, and labels that are whole."""
    page = browse(report, theme, "--dump-dom")
    plots = re.findall(r'<div id="plot\d+".*?</figure>', page, re.DOTALL)
    assert len(plots) == PLOTS
    for plot in plots:
        assert plot.count("<svg") == 1
        assert len(re.findall(r'<path[^>]* d="M[^"]{6,}"', plot)) > 5
        labels = re.findall(r"<text[^>]*>([^<]+)</text>", plot)
        assert len(labels) > 5
        assert not [label for label in labels if "…" in label]
        assert INK[theme] in plot or INK[theme].replace(" ", "") in plot or ink_hex(theme) in plot


def ink_hex(theme):
    return "#" + "".join(f"{int(n):02x}" for n in re.findall(r"\d+", INK[theme]))


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
def test_page_is_as_wide_as_the_window(report, tmp_path):
    """Nothing makes a narrow window scroll sideways but wide tables, which do it by themselves."""
    script = "<script>document.title = document.documentElement.scrollWidth</script>"
    narrow = tmp_path / "narrow.html"
    html = report.read_text(encoding="utf-8")
    body, end, rest = html.rpartition("</body>")  # the libraries' code has one as well
    narrow.write_text(body + script + end + rest, encoding="utf-8")
    shown = browse(narrow, "light", "--dump-dom", window="500,2000")
    assert int(re.search(r"<title>(\d+)</title>", shown)[1]) <= 500
