"""What a release does before tests, and what the forge runs."""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path

import pytest
import yaml
from release import set_version

ROOT = Path(__file__).resolve().parent.parent
DAY = date(2030, 1, 2)
FILES = ("CHANGELOG.md", "CITATION.cff", "pyproject.toml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    changes = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    head, found, rest = changes.partition("## Unreleased\n")
    changes = f"{head}{found}\n### Added\n- Something.\n{rest}"
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    return tmp_path


def test_a_release_writes_version_and_day(project: Path) -> None:
    set_version("99.0.1", DAY, project)
    changes, citation, settings = ((project / name).read_text(encoding="utf-8") for name in FILES)
    assert "## Unreleased\n\n## 99.0.1 (2030-01-02)\n\n### Added\n- Something.\n" in changes
    assert "\nversion: 99.0.1\ndate-released: 2030-01-02\n" in citation
    assert settings.count('version = "99.0.1"') == 1
    with pytest.raises(ValueError, match="nothing is under Unreleased"):
        set_version("99.0.2", DAY, project)


def test_what_is_new_is_a_page_that_a_reader_finishes_and_the_rest_is_folded() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    page, *folded = changes.split("<details>\n<summary>")
    assert len(page.split()) <= 850
    assert all(
        f"### {part}\n" in page
        for part in (
            "For researchers",
            "For teams that evaluate",
            "For engineers",
            "When you upgrade from 1.0",
        )
    )
    assert [part.count("\n</details>\n") for part in folded] == [1, 1]


@pytest.mark.parametrize("version", ["", "1", "v99.0.0", "0.9.0", "99.0"])
def test_what_is_no_higher_version_is_refused_and_nothing_written(
    project: Path, version: str
) -> None:
    before = [(project / name).read_bytes() for name in FILES]
    with pytest.raises(ValueError, match=r"expected three numbers, higher than \d"):
        set_version(version, DAY, project)
    assert [(project / name).read_bytes() for name in FILES] == before


def test_the_forge_runs_targets_that_there_are_on_every_python_that_is_promised() -> None:
    plan = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    jobs = plan["jobs"]
    assert [jobs[name].get("needs") for name in ("check", "quick", "full")] == [
        None,
        "check",
        "quick",
    ]
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([\w-]+)", "\n".join(commands), re.MULTILINE)
    assert targets == ["check", "quick", "test-versions", "test", "test-pythons"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    promised = re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text()
    )
    assert jobs["full"]["strategy"]["matrix"]["python"] == promised
