import pytest

from assets.traces.errors import DatasetError
from assets.traces.hub_location import HubLocation, parse_hub_location
from assets.traces.hub_settings import HubSettings


def test_an_empty_environment_means_the_public_hub():
    settings = HubSettings.from_environment({})
    assert settings.endpoint == "https://huggingface.co"
    assert settings.token is None
    assert not settings.offline
    assert settings.parallel_downloads == 8


@pytest.mark.parametrize(
    ("text", "offline"),
    [
        ("1", True),
        ("yes", True),
        ("True", True),
        ("ON", True),
        ("0", False),
        ("", False),
        ("no", False),
    ],
)
def test_offline_takes_the_values_that_the_ecosystem_takes(text, offline):
    assert HubSettings.from_environment({"HF_HUB_OFFLINE": text}).offline is offline


@pytest.mark.parametrize(
    "environment",
    [
        {"HF_ENDPOINT": "huggingface.co"},
        {"HF_ENDPOINT": "ftp://mirror.example.org"},
        {"HF_ENDPOINT": "https://user:secret@mirror.example.org"},
        {"KERNELINDEX_HUB_HOSTS": "https://mirror.example.org"},
        {"KERNELINDEX_HUB_HOSTS": "*"},
        {"HF_HUB_DOWNLOAD_TIMEOUT": "soon"},
        {"HF_HUB_DOWNLOAD_TIMEOUT": "-1"},
        {"HF_HUB_DOWNLOAD_TIMEOUT": "nan"},
    ],
)
def test_a_bad_variable_is_named_and_no_password_is_shown(environment):
    with pytest.raises(DatasetError, match=next(iter(environment))) as raised:
        HubSettings.from_environment(environment)
    assert "secret" not in raised.value.message


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://huggingface.co/x", True),
        ("https://cdn-lfs-us-1.hf.co/x", True),
        ("https://cas-bridge.xethub.hf.co/x?signature=1", True),
        ("https://cdn-lfs.huggingface.co/x", True),
        ("https://storage.example.org:8443/x", True),
        ("https://a.mirror.example.net/x", True),
        ("https://storage.example.org/x", False),
        ("https://mirror.example.net/x", False),
        ("http://cdn-lfs-us-1.hf.co/x", False),
        ("https://cdn-lfs-us-1.hf.co:444/x", False),
        ("https://evilhf.co/x", False),
        ("https://hf.co.evil.org/x", False),
        ("https://hf.co@evil.org/x", False),
        ("https://user@hf.co/x", False),
        ("https://hf.co:99999999/x", False),
        ("file:///etc/passwd", False),
        ("//evil.org/x", False),
        ("https://169.254.169.254/latest", False),
    ],
)
def test_redirects_are_allowed_to_the_hub_its_storage_and_hosts_that_were_named(url, allowed):
    settings = HubSettings.from_environment(
        {"KERNELINDEX_HUB_HOSTS": "storage.example.org:8443, *.mirror.example.net"}
    )
    assert settings.allows(url) is allowed


def test_the_endpoint_is_its_scheme_host_and_port():
    settings = HubSettings(endpoint="https://mirror.example.org/hub")
    assert settings.is_endpoint("https://mirror.example.org:443/other")
    assert not settings.is_endpoint("http://mirror.example.org/hub")
    assert not settings.is_endpoint("https://mirror.example.org:8443/hub")
    assert not settings.is_endpoint("https://mirror.example.org.evil.org/hub")


@pytest.mark.parametrize(
    ("location", "revision", "expected"),
    [
        ("hf://datasets/own/data", None, ("own/data", "main")),
        ("hf://datasets/own/data@v1.0", None, ("own/data", "v1.0")),
        ("hf://datasets/own/data", "v1.0", ("own/data", "v1.0")),
        ("hf://datasets/own/data@v1.0", "v1.0", ("own/data", "v1.0")),
        ("hf://datasets/own/data@refs%2Fpr%2F7", None, ("own/data", "refs/pr/7")),
        ("hf://datasets/Own-1/da.ta_2", None, ("Own-1/da.ta_2", "main")),
    ],
)
def test_locations_name_dataset_and_revision(location, revision, expected):
    assert parse_hub_location(location, revision) == HubLocation(*expected)


@pytest.mark.parametrize(
    ("location", "revision"),
    [
        ("hf://own/data", None),
        ("hf://datasets/data", None),
        ("hf://datasets/own/data/traces", None),
        ("hf://datasets/own/..", None),
        ("hf://datasets/own/data@", None),
        ("hf://datasets/own/data@a b", None),
        ("hf://datasets/own/data@../main", None),
        ("hf://datasets/own/data@a?b", None),
        ("hf://datasets/own/data@v1", "v2"),
        ("hf://datasets/own/data", ""),
    ],
)
def test_a_bad_location_is_an_error(location, revision):
    with pytest.raises(DatasetError):
        parse_hub_location(location, revision)
