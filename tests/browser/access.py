"""Sizes of screens, and what axe-core finds wrong on a page."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def violations(page: Page, within: str | None = None) -> list[str]:
    found: dict[str, Any] = Axe().run(page, context=within).response
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
