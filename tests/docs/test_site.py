"""The site for programs: a twin in Markdown of each page, and a list of the pages that is made of the home."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.docs.page import DOCS, ROOT, links_of

HOME = DOCS / "index.md"


@pytest.fixture(scope="module")
def twins() -> ModuleType:
    """The hook of the site that writes them; it needs nothing of MkDocs."""
    spec = spec_from_file_location("twins", ROOT / "site" / "twins.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_names_each_page_that_a_table_of_the_home_names(twins: ModuleType) -> None:
    """With what the page is for, under the heading that it has there."""
    listed = twins.list_pages(HOME.read_text("utf-8"))

    lines = listed.splitlines()
    assert lines[0] == "# Outlive"
    assert lines[2].startswith("> Python workflows that outlive their process. ")
    named = {link for link in links_of(HOME) if not link.startswith("images/") and "#" not in link}
    assert [link for link in named if f"]({link})" not in listed] == []
    assert lines.index("## Start") < lines.index("- [Getting started](guides/getting-started.md): you have ten minutes")


def test_a_page_has_a_twin_beside_it_and_says_so(twins: ModuleType, tmp_path: Path) -> None:
    """The twin is the text as the site has it."""
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guides/steps.md"), markdown="# Steps\n")

    output = twins.on_post_page("<head></head>", page=page, config=SimpleNamespace(site_dir=tmp_path))

    assert (tmp_path / "guides" / "steps.md").read_text("utf-8") == "# Steps\n"
    assert output == '<head><link rel="alternate" type="text/markdown" href="steps.md">\n</head>'


def test_a_site_without_one_of_its_twins_is_not_built(twins: ModuleType, tmp_path: Path) -> None:
    """A list that names a page that is not there fails the build too; the page for errors needs no twin."""
    (tmp_path / "llms.txt").write_text("- [Steps](steps.md): calls\n", "utf-8")
    (tmp_path / "waiting.html").touch()
    (tmp_path / "404.html").touch()
    (tmp_path / "invoices").mkdir()
    (tmp_path / "invoices" / "index.html").touch()
    (tmp_path / "invoices" / "README.md").touch()

    with pytest.raises(SystemExit, match=r"no Markdown of waiting\.html, steps\.md"):
        twins.on_post_build(config=SimpleNamespace(site_dir=tmp_path))
