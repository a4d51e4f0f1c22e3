"""The Dagster UI in a real browser: it works, and a page of another origin gets nowhere."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from tests.leaderboards.site.browser import Browser, started
from tests.pipelines.conftest import Deployment
from tests.pipelines.test_server import Server
from tests.pipelines.test_server import started as serving

pytestmark = pytest.mark.integration

# A name of somebody else that leads to this machine: another site, and DNS rebinding.
FOREIGN = "evil.example"

LAUNCH = (
    'mutation{launchRun(executionParams:{selector:{repositoryName:"__repository__",'
    'repositoryLocationName:"pipelines.definitions",jobName:"build_site"},runConfigData:"{}"})'
    "{__typename}}"
)
SECRET = "dagsterVersion"

# Everything that a page can try against another address, and what came of it.
ATTACK = """
const [ui, mutation, done] = [arguments[0], arguments[1], arguments[arguments.length - 1]];
const query = ui + '/graphql?query=' + encodeURIComponent(mutation);
const read = async (address, options) => {
  try {
    const answer = await fetch(address, options);
    return answer.type + ' ' + await answer.text();
  } catch (error) { return 'refused' }
};
const loaded = (tag, attribute, address) => new Promise(resolve => {
  const element = document.createElement(tag);
  element.onload = () => resolve('loaded'); element.onerror = () => resolve('refused');
  element[attribute] = address; document.body.append(element);
});
const socket = () => new Promise(resolve => {
  const opened = new WebSocket(ui.replace('http', 'ws') + '/graphql', 'graphql-ws');
  opened.onopen = () => resolve('opened'); opened.onerror = () => resolve('refused');
});
const form = kind => new Promise(resolve => {
  const frame = document.createElement('iframe'); frame.name = 'frame' + Math.random();
  document.body.append(frame);
  const sent = document.createElement('form');
  Object.assign(sent, {method: 'post', enctype: kind, target: frame.name, action: query});
  const field = document.createElement('input');
  field.name = '{"query": ' + JSON.stringify(mutation) + ', "x": "'; field.value = '"}';
  sent.append(field); document.body.append(sent);
  frame.onload = () => { try { resolve(frame.contentDocument ? 'own' : 'hidden') }
                         catch (error) { resolve('hidden') } };
  sent.submit(); setTimeout(() => resolve('hidden'), 2000);
});
const framed = () => new Promise(resolve => {
  const frame = document.createElement('iframe'); frame.src = ui + '/';
  frame.onload = () => { try { resolve(frame.contentDocument ? 'own' : 'hidden') }
                         catch (error) { resolve('hidden') } };
  document.body.append(frame); setTimeout(() => resolve('hidden'), 3000);
});
const body = JSON.stringify({query: mutation});
(async () => done({
  image: await loaded('img', 'src', query),
  script: await loaded('script', 'src', query),
  favicon: await loaded('img', 'src', ui + '/favicon.png'),
  read: await read(ui + '/server_info'),
  opaque: await read(ui + '/server_info', {mode: 'no-cors'}),
  quiet: await read(ui + '/server_info', {referrerPolicy: 'no-referrer'}),
  json: await read(ui + '/graphql', {method: 'POST', body,
                                     headers: {'Content-Type': 'application/json'}}),
  text: await read(ui + '/graphql', {method: 'POST', body, mode: 'no-cors'}),
  disguised: await read(query, {method: 'POST', body, mode: 'no-cors',
                                headers: {'Content-Type': 'text/plain; application/json'}}),
  beacon: String(navigator.sendBeacon(query, body)),
  websocket: await socket(),
  form: await form('text/plain'), encoded: await form('application/x-www-form-urlencoded'),
  frame: await framed(),
}))();
"""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>another page</title><body></body>")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def another_page() -> Iterator[int]:
    """A server of a page that is not ours; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    deployment = Deployment(tmp_path_factory.mktemp("server"))
    with serving(deployment) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started(f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1") as found:
        found.driver.set_script_timeout(60)
        found.width(1400)
        yield found


def runs(server: Server) -> list[str]:
    answer = requests.post(
        f"{server.url}/graphql",
        json={"query": "{runsOrError {... on Runs {results {jobName status}}}}"},
        timeout=60,
    ).json()
    return [f"{run['jobName']} {run['status']}" for run in answer["data"]["runsOrError"]["results"]]


def wait_until(browser: Browser, text: str, seconds: float = 60) -> None:
    browser.until(lambda: text in browser.text("body"), seconds)


def test_the_ui_works_and_launches_a_job(server: Server, browser: Browser) -> None:
    browser.driver.get(f"{server.url}/locations/pipelines.definitions/jobs/ingest/playground")
    wait_until(browser, "Launch Run", 60)
    browser.until(
        lambda: [
            button
            for button in browser.shown("button")
            if button.text.strip() == "Launch Run" and button.is_enabled()
        ],
        60,
    )
    [button] = [one for one in browser.shown("button") if one.text.strip() == "Launch Run"]
    button.click()
    browser.until(lambda: "/runs/" in browser.driver.current_url, 60)
    browser.until(lambda: runs(server) == ["ingest SUCCESS"], 180)
    # The page has heard of it, by the websocket of its log or by asking.
    wait_until(browser, "Success", 60)
    wait_until(browser, "RUN_SUCCESS", 60)
    refused = [said for said in browser.complaints() if "40" in said or "42" in said]
    assert refused == []


@pytest.mark.parametrize(
    ("page", "ui"),
    [
        (FOREIGN, "localhost"),
        # Another program of this machine: the same site, another origin.
        ("localhost", "localhost"),
        ("127.0.0.1", "localhost"),
        # The page's own name leads to this server now.
        (FOREIGN, FOREIGN),
    ],
)
def test_a_page_of_another_origin_starts_and_reads_nothing(
    server: Server, browser: Browser, page: str, ui: str
) -> None:
    before = runs(server)
    with another_page() as port:
        browser.driver.get(f"http://{page}:{port}/")
        mine = f"http://{ui}:{server.port}"
        found = browser.driver.execute_async_script(ATTACK, mine, LAUNCH)
    assert SECRET not in json.dumps(found)
    tried = ("image", "script", "favicon", "read", "quiet", "json", "websocket")
    assert {name: found[name] for name in tried} == dict.fromkeys(tried, "refused")
    for name in ("opaque", "text", "disguised"):
        assert found[name] in ("refused", "opaque ")
    assert {found[name] for name in ("form", "encoded", "frame")} == {"hidden"}
    time.sleep(2)
    assert runs(server) == before


def test_a_name_that_was_led_here_shows_no_page(server: Server, browser: Browser) -> None:
    browser.driver.get(f"http://{FOREIGN}:{server.port}/")
    assert "does not go by that host name" in browser.text("body")
    told = browser.driver.execute_async_script(ATTACK, f"http://{FOREIGN}:{server.port}", LAUNCH)
    assert SECRET not in json.dumps(told)


def test_what_was_tried_is_what_an_own_page_does(server: Server, browser: Browser) -> None:
    before = runs(server)
    browser.driver.get(f"{server.url}/server_info")
    found = browser.driver.execute_async_script(ATTACK, server.url, LAUNCH)
    assert SECRET.replace("V", "_v") in found["read"]
    assert "LaunchRunSuccess" in found["json"]
    assert found["favicon"] == "loaded"
    assert found["websocket"] == "opened"
    assert found["frame"] == "own"
    # Even an own page changes nothing by GET or by a form.
    assert found["image"] == "refused"
    assert len(runs(server)) == len(before) + 1
