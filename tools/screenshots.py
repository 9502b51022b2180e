"""Takes the pictures of the report in docs/report.md: desktop and phone, light and dark.

python tools/screenshots.py build/audit-next/report.html docs/images
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

# The phone is twice as tall as a real one: its picture stands beside the desktop's.
SIZES = {"desktop": (1280, 1600), "phone": (390, 1400)}


def find_chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("needs chromium, chromium-browser or google-chrome on the PATH")
    return found


def take(browser: Browser, report: Path, folder: Path) -> None:
    for name, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
            )
            page.goto(report.resolve().as_uri())
            page.screenshot(path=folder / f"report-{name}-{scheme}.png")
            page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        take(browser, arguments.report, arguments.folder)
        browser.close()


if __name__ == "__main__":
    main()
