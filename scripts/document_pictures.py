"""Takes the pictures of the documents: records the examples and shows their pages in a browser.

python scripts/document_pictures.py [--sample TRACE] [NAME ...]

Needs `make .venv/dev`, Debian's package `chromium-headless-shell`, and for some pictures the sample
of TensorBoard's former plugin (a ResNet-50 on a V100, `resnet50_num_workers_0`). A page is that of
`selftime report`; a picture is a screenshot of 1280 x 800 pixels in 256 colours.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Page, sync_playwright

__all__ = ["main"]

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 800
BROWSERS: Final = ("chromium-headless-shell", "chromium")


@dataclass(frozen=True)
class Picture:
    """A picture of a panel."""

    recording: str
    """Which of `RECORDINGS` it shows, or `sample`."""
    panel: str
    """The panel's name in the page's address."""


PICTURES: Final = {
    "answer": Picture("digits", "answer"),
    "compare": Picture("pair", "compare"),
    "view-distributed": Picture("ranks", "distributed"),
    "view-memory": Picture("memory", "memory"),
    "view-modules": Picture("digits", "modules"),
    "view-overview": Picture("sample", "overview"),
    "view-operators": Picture("sample", "operators"),
    "view-kernels": Picture("sample", "kernels"),
    "view-timeline": Picture("sample", "timeline"),
}
DIGITS: Final = "examples/digits/train.py"
RECORDINGS: Final = {
    "digits": (DIGITS, "--epochs", "4"),
    "fixed": ("examples/digits/train_fixed.py", "--epochs", "6"),
    "memory": ("--memory", DIGITS, "--epochs", "4"),
    "ranks": (
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "examples/ddp/ddp_loop.py",
    ),
}
"""What `selftime run` is given, for each recording."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *PICTURES], help="pictures; default: all")
    parser.add_argument("--sample", type=Path, help="the sample of TensorBoard's former plugin")
    options = parser.parse_args()
    wanted = {name: PICTURES[name] for name in options.names or PICTURES}
    with tempfile.TemporaryDirectory() as temporary:
        pages = Pages(Path(temporary), options.sample)
        executable = next(path for name in BROWSERS if (path := shutil.which(name)))
        with sync_playwright() as playwright:
            flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            browser = playwright.chromium.launch(executable_path=executable, args=flags)
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            for name, picture in wanted.items():
                file = pages.page_of(picture.recording)
                if file is None:
                    print(f"{name} is left out: it shows the sample; name it with `--sample`")
                    continue
                take(page, file, picture.panel, IMAGES / f"{name}.png")
            browser.close()


class Pages:
    """Makes the pages of recordings, each once."""

    def __init__(self, folder: Path, sample: Path | None) -> None:
        self.folder, self.sample = folder, sample
        self._made: dict[str, Path] = {}

    def page_of(self, recording: str) -> Path | None:
        """The HTML file about a recording; None for the sample if it is not there."""
        if recording == "sample" and self.sample is None:
            return None
        if recording not in self._made:
            self._made[recording] = self._make(recording)
        return self._made[recording]

    def _make(self, recording: str) -> Path:
        page = self.folder / f"{recording}.html"
        if recording == "pair":
            sides = [str(self._record(name)) for name in ("digits", "fixed")]
            selftime("compare", *sides, "-o", str(page))
        else:
            source = self.sample if recording == "sample" else self._record(recording)
            selftime("report", str(source), "-o", str(page))
        return page

    def _record(self, name: str) -> Path:
        folder = self.folder / name
        if not folder.exists():
            selftime("run", "-q", "-o", str(folder), *RECORDINGS[name])
        return folder


def selftime(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "selftime", *words], cwd=ROOT, check=True)


def take(page: Page, file: Path, panel: str, picture: Path) -> None:
    """Writes a picture of a panel in 256 colours."""
    page.goto(f"{file.as_uri()}#/{panel}")
    page.reload()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)  # charts are drawn
    page.screenshot(path=picture)
    with Image.open(picture) as image:
        image.convert("RGB").quantize(256).save(picture, optimize=True)
    print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
