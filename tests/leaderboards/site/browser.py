"""A real Chromium without a window, and what people do with it."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class Browser:
    """A browser that reads a site from the disk, as people do with what they were sent."""

    def __init__(self, driver) -> None:  # selenium is no dependency of the types
        self.driver = driver

    def open(self, root: Path, address: str) -> None:
        path, mark, rest = address.partition("?")
        fragment_at = path.find("#")
        name, fragment = (path, "") if fragment_at < 0 else (path[:fragment_at], path[fragment_at:])
        self.driver.get("about:blank")
        self.driver.get((root / name).as_uri() + mark + rest + fragment)

    def find(self, css: str):
        return self.driver.find_element("css selector", css)

    def all(self, css: str) -> list:
        return self.driver.find_elements("css selector", css)

    def shown(self, css: str) -> list:
        return [element for element in self.all(css) if element.is_displayed()]

    def text(self, css: str = "main") -> str:
        return self.find(css).text

    def until(self, condition, seconds: float = 10):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds).until(lambda _: condition())

    def choose(self, css: str, text: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self.find(css)).select_by_visible_text(text)

    def type(self, css: str, text: str) -> None:
        field = self.find(css)
        field.clear()
        field.send_keys(text)

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def script(self, source: str, *arguments: object):
        return self.driver.execute_script(source, *arguments)

    def width(self, pixels: int, height: int = 900) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def scheme(self, name: str) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": name}]},
        )

    def requested(self) -> list[str]:
        """Addresses that were asked for since the last call."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """What the console said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))


@contextmanager
def started(*flags: str) -> Iterator[Browser]:
    """A browser with a profile of its own, and more flags; skips where there is none."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no chromium or chromedriver; the packages chromium and chromium-driver are it")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*_FLAGS, *flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(chromedriver))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
