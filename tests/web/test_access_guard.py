from typing import Any

import pytest
from werkzeug.test import Client, EnvironBuilder
from werkzeug.wrappers import Response

from selftime.web.access_guard import AccessGuard

TOKEN = "a-long-random-word"  # noqa: S105 - of a test


def guarded(**options: Any) -> Client:
    return Client(AccessGuard(Response("let in"), **options))


def ask(client: Client, host: str, address: str = "/api/traces") -> Any:
    return client.get(address, headers={"Host": host})


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:6070",
        "localhost:6070",
        "LOCALHOST:6070",
        "[::1]:6070",
        "localhost",
        "127.0.0.1:9",
    ],
)
def test_the_loopback_is_ours_with_any_port(host: str) -> None:
    assert ask(guarded(), host).text == "let in"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:6070",
        "localhost.evil.example:6070",
        "127.0.0.1.evil.example:6070",
        "evil.example:6070@localhost",
        "localhost:6070@evil.example",
        "localhost:6070x",
        "localhost:",
        "127.0.0.2:6070",
        "0.0.0.0:6070",
        "[::2]:6070",
        "::1",
        "localhost:6070\t",
        "localhost,evil.example",
    ],
)
def test_other_names_are_refused(host: str) -> None:
    answer = ask(guarded(), host)
    assert answer.status_code == 421
    assert "is not called" in answer.json["error"]


def test_a_question_without_a_name_is_refused() -> None:
    told: list[str] = []
    environ = EnvironBuilder("/").get_environ()
    del environ["HTTP_HOST"]
    app = AccessGuard(Response("let in"))
    body = b"".join(app(environ, lambda status, _headers: told.append(status)))
    assert told[0].startswith("421")
    assert b"let in" not in body


def test_a_refusal_says_what_to_do() -> None:
    answer = ask(guarded(), "hub.example:443")
    assert answer.status_code == 421
    assert "`hub.example:443`; allow it with `--allow-host`" in answer.json["error"]


def test_a_name_that_is_allowed_is_so_with_its_port_only() -> None:
    client = guarded(hosts=["Hub.example:443"])
    assert ask(client, "hub.example:443").text == "let in"
    assert ask(client, "hub.example:80").status_code == 421


def test_a_name_that_is_allowed_without_a_port_is_so_with_any() -> None:
    client = guarded(hosts=["hub.example"])
    assert ask(client, "hub.example").text == "let in"
    assert ask(client, "hub.example:8443").text == "let in"
    assert ask(client, "x.hub.example").status_code == 421


def test_an_open_address_may_be_asked_by_the_machines_name() -> None:
    client = guarded(token=TOKEN, machine_name="Node1.cluster")
    for host in ("node1:6070", "node1.cluster", "NODE1.elsewhere.example:6070"):
        assert ask(client, host, f"/?token={TOKEN}").text == "let in"
        assert ask(guarded(machine_name="node1"), host).status_code == 421
    assert ask(client, "node12", f"/?token={TOKEN}").status_code == 421
    assert ask(guarded(token=TOKEN), ".example", f"/?token={TOKEN}").status_code == 421


def test_an_open_address_may_be_asked_by_any_number_of_it() -> None:
    client = guarded(token=TOKEN)
    for host in ("192.0.2.7:6070", "[2001:db8::1]:6070", "192.0.2.7"):
        assert ask(client, host, f"/?token={TOKEN}").text == "let in"
        assert ask(guarded(), host).status_code == 421


@pytest.mark.parametrize(
    ("site", "mode", "status"),
    [
        ("cross-site", "no-cors", 403),
        ("cross-site", "cors", 403),
        ("cross-site", "navigate", 200),
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
    ],
)
def test_a_page_of_another_site_cannot_make_it_work(site: str, mode: str, status: int) -> None:
    headers = {"Host": "localhost", "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert guarded().get("/api/advice", headers=headers).status_code == status


def test_an_open_address_needs_the_token() -> None:
    client = guarded(token=TOKEN)
    for address in ("/", "/app.js", "/api/traces", "/api/traces?token=", "/?token=x", "/?token=é"):
        answer = ask(client, "localhost", address)
        assert answer.status_code == 403, address
        assert "needs the token" in answer.json["error"]


def test_who_has_the_token_gets_a_cookie_that_scripts_cannot_read() -> None:
    client = guarded(token=TOKEN)
    first = ask(client, "localhost", f"/?token={TOKEN}")
    assert first.text == "let in"
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path" not in cookie  # then it is of the folder of the page, whatever a proxy calls that
    assert ask(client, "localhost", "/app.js").text == "let in"
    assert "Set-Cookie" not in ask(client, "localhost", f"/api/traces?token={TOKEN}").headers
    assert ask(Client(client.application), "localhost", "/app.js").status_code == 403


def test_the_cookie_of_another_server_is_not_ours() -> None:
    client = guarded(token=TOKEN)
    other = guarded(token="another")  # noqa: S106 - of a test
    name = ask(other, "localhost", "/?token=another").headers["Set-Cookie"].partition("=")[0]
    client.set_cookie(name, "another")
    assert ask(client, "localhost").status_code == 403
    assert name not in ask(client, "localhost", f"/?token={TOKEN}").headers["Set-Cookie"]


def test_a_name_is_checked_before_the_token() -> None:
    assert ask(guarded(token=TOKEN), "evil.example", f"/?token={TOKEN}").status_code == 421
