"""Downloads from a local server."""

import hashlib
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request

import pytest
from raises import raises

from unweave.data import load_data
from unweave.data.storage.download import RemoteFile, SecureRedirects, digest_of, fetch
from unweave.data.storage.progress import observe_progress
from unweave.errors import UserNotice

CONTENT = bytes(range(256)) * 20_000  # 5 MB: several blocks
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """`behave` selects a fault; `asked` lists the requested ranges."""

    daemon_threads = True
    behave = ""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.content = [], CONTENT

    def handle_error(self, *args):
        """Ignore clients that close the connection early."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args):
        pass

    def do_GET(self):
        asked, content, behave = self.headers.get("Range"), self.server.content, self.server.behave
        self.server.asked.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and behave != "no ranges" else 0
        if behave == "gone":
            return self.send_error(404)
        if start >= len(content) > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if behave != "no length":
            self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Content-Type", "text/html" if behave == "web page" else "application/octet-stream")
        self.end_headers()
        self.wfile.write(content[start : start + 1_500_000] if behave == "breaks off" else content[start:])


@pytest.fixture
def server():
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def remote(server, **change):
    return RemoteFile("file.bin", (server.url,), len(CONTENT), f"sha256:{SHA256}")._replace(**change)


def fails(reason, made, folder):
    with raises("path") as caught:
        fetch("toys", made, folder)
    text = str(caught.value)
    assert reason in text and "toys" in text and made.urls[0] in text
    assert not (folder / "file.bin").exists()


def test_a_file_is_downloaded_once(tmp_path, server):
    seen = []
    with observe_progress(lambda *call: seen.append(call)):
        path = fetch("toys", remote(server), tmp_path / "new" / "folder")
    assert path.read_bytes() == CONTENT and os.listdir(path.parent) == ["file.bin"]
    assert seen[-1] == ("downloading file.bin", len(CONTENT), len(CONTENT)) and len(seen) > 1
    assert fetch("toys", remote(server), path.parent) == path and server.asked == [None]


@pytest.mark.filterwarnings("ignore::unweave.errors.UserNotice")
@pytest.mark.parametrize("known", [{}, {"size": None}, {"size": None, "digest": ""}, {"digest": ""}])
def test_an_interrupted_download_is_resumed(tmp_path, server, known):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:2_000_001])
    assert fetch("toys", remote(server, **known), tmp_path).read_bytes() == CONTENT
    assert server.asked == ["bytes=2000001-"]


@pytest.mark.parametrize("known", [{}, {"size": None}])
def test_a_complete_part_is_not_downloaded_again(tmp_path, server, known):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch("toys", remote(server, **known), tmp_path).read_bytes() == CONTENT
    assert len(server.asked) <= 1


@pytest.mark.parametrize("behave, length", [("no ranges", 1000), ("", len(CONTENT) + 10)])
def test_a_download_that_cannot_be_resumed_starts_again(tmp_path, server, behave, length):
    server.behave = behave
    (tmp_path / "file.bin.part").write_bytes((CONTENT + b"not more")[:length])
    assert fetch("toys", remote(server), tmp_path).read_bytes() == CONTENT


def test_a_connection_that_ends_early_is_resumed(tmp_path, server):
    server.behave = "breaks off"
    assert fetch("toys", remote(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1500000-", "bytes=3000000-", "bytes=4500000-"]


def test_a_file_of_unknown_length(tmp_path, server):
    server.behave = "no length"
    assert fetch("toys", remote(server, size=None), tmp_path).read_bytes() == CONTENT


def test_a_dead_link(tmp_path, server):
    server.behave = "gone"
    fails("HTTP 404", remote(server), tmp_path)
    assert not os.listdir(tmp_path)


def test_no_server(tmp_path, server):
    server.shutdown()
    server.server_close()
    fails("refused", remote(server), tmp_path)
    fails("no answer", remote(server, urls=("http://nowhere.invalid/file.bin",)), tmp_path)


def test_a_web_page_instead_of_the_file(tmp_path, server):
    server.behave = "web page"
    fails("web page", remote(server), tmp_path)


def test_a_file_that_differs_from_the_published_one(tmp_path, server):
    fails("5120000 bytes, not the published 5119999", remote(server, size=len(CONTENT) - 1), tmp_path)
    server.content = CONTENT[:-1] + b"x"
    fails("SHA-256 is", remote(server), tmp_path)
    assert not os.listdir(tmp_path)  # a file that differs is deleted
    fails("MD5 is", remote(server, digest="md5:0000"), tmp_path)


def test_a_short_file(tmp_path, server):
    server.behave, server.content = "no length", CONTENT[:3_000_000]
    fails("3000000 bytes, not the published 5120000", remote(server, digest=""), tmp_path)


def test_a_file_without_a_published_checksum_has_that_of_its_first_download(tmp_path, server):
    unknown = remote(server, digest="")
    with pytest.warns(UserNotice, match=f"not encrypted.*{SHA256}"):
        path = fetch("toys", unknown, tmp_path)
    assert (tmp_path / "file.bin.sha256").read_text() == f"{SHA256}  file.bin\n"
    assert fetch("toys", unknown, tmp_path) == path
    path.write_bytes(CONTENT[:-1] + b"x")
    with raises("path", value=str(path)):
        fetch("toys", unknown, tmp_path)
    with raises("path", value=str(path)):
        fetch("toys", remote(server), tmp_path)


def test_a_redirect_from_https_to_http_is_not_followed(tmp_path, server):
    request, follow = Request("https://home.invalid/file.bin"), SecureRedirects().redirect_request
    assert follow(request, None, 302, "", {}, "https://other.invalid/file.bin").full_url.startswith("https://other")
    with pytest.raises(Exception, match="from https to http://"):
        follow(request, None, 302, "", {}, server.url)


def test_the_second_address_is_tried(tmp_path, server):
    urls = ("http://nowhere.invalid/file.bin", server.url)
    assert fetch("toys", remote(server, urls=urls), tmp_path).read_bytes() == CONTENT
    server.behave = "gone"
    fails("HTTP 404", remote(server, urls=urls), tmp_path / "other")


def test_simultaneous_downloads(tmp_path, server):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(fetch("toys", remote(server), tmp_path))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3 and (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.asked == [None] and os.listdir(tmp_path) == ["file.bin"]


def test_a_folder_that_cannot_be_created(tmp_path, server):
    (tmp_path / "file").write_text("")
    with raises("UNWEAVE_CACHE", value=str(tmp_path / "file" / "below")):
        fetch("toys", remote(server), tmp_path / "file" / "below")
    with raises("UNWEAVE_CACHE", value=str(tmp_path)):
        fetch("toys", remote(server, size=10**18), tmp_path)


def test_git_checksum(tmp_path):
    (tmp_path / "hello").write_text("hello\n")
    assert digest_of(tmp_path / "hello", "git") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_data_set_without_network(tmp_path, monkeypatch):
    """Offline, the error names the address and the option `path`."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "unweave.data.published.coil20.REMOTE", RemoteFile("coil-20-proc.zip", ("http://nowhere.invalid/c.zip",))
    )
    with raises("path") as error:
        load_data("coil20")
    assert "http://nowhere.invalid/c.zip" in str(error.value)
    assert not any(path.is_file() for path in tmp_path.rglob("*") if path.parent.name != "locks")
