"""What a client makes of the certificate of a daemon, and a renewal while clients come and go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import dss_client
from dss_client.access import Permission
from dss_core.errors import DaemonNotTrusted
from support.certificates import Authority, Pair, replaced
from support.daemon_process import running, short_directory
from support.proof_share import share

RENEWALS = share(2, 12)
"""Every other one is garbage."""
PATIENCE_S = 30.0
COMERS = 4
EVERYTHING = [Permission("read", ("#",), ("*",))]


class Site:
    """A daemon with a certificate, and a token."""

    def __init__(self, folder: Path, local: str, remote: str, authority: Authority) -> None:
        self.folder = folder
        self.local = local
        self.remote = remote
        self.ca = authority.cert
        self.token_file = folder / "token"

    def client(self, ca: Path | None = None) -> dss_client.Client:
        return dss_client.connect(
            endpoint=self.remote, ca=ca or self.ca, token_file=self.token_file, patient=False
        )

    def serve(self, pair: Pair) -> None:
        """Renew it."""
        replaced(self.folder / "cert.pem", pair.cert)
        replaced(self.folder / "key.pem", pair.key)


@asynccontextmanager
async def serving(authority: Authority, pair: Pair) -> AsyncIterator[Site]:
    with short_directory() as folder:
        replaced(folder / "cert.pem", pair.cert)
        replaced(folder / "key.pem", pair.key)
        async with running(
            "--data-dir", f"{folder}/d", "--listen", f"unix:{folder}/s",
            "--listen", "127.0.0.1:0,tls,clients=tokens",
            "--tls-cert", f"{folder}/cert.pem", "--tls-key", f"{folder}/key.pem",
        ) as daemon:  # fmt: skip
            local, remote = daemon.endpoints
            site = Site(folder, local, remote, authority)
            async with dss_client.connect(endpoint=site.local) as admin:
                made = await admin.access.add_token("reader", EVERYTHING)
            site.token_file.touch(0o600)
            site.token_file.write_text(made.token)
            yield site


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("names", "begins", "ends", "said"),
    [
        (("IP:127.0.0.1",), -2 * HOUR, -HOUR, "expired"),
        (("IP:127.0.0.1",), HOUR, 2 * HOUR, "not valid yet"),
        (("DNS:elsewhere.example",), -HOUR, HOUR, "another name"),
    ],
)
async def test_a_certificate_that_does_not_hold_is_not_trusted_and_it_is_said_why(
    tmp_path: Path, names: tuple[str, ...], begins: timedelta, ends: timedelta, said: str
) -> None:
    authority = Authority(tmp_path)
    pair = authority.signed("localhost", *names, begins=begins, ends=ends)
    async with serving(authority, pair) as site, site.client() as client:
        with pytest.raises(DaemonNotTrusted, match=said):
            await client.topics.list()


@pytest.mark.slow("files are looked at every second")
async def test_clients_come_and_go_over_renewals_and_nobody_is_turned_away(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pairs = [authority.signed("localhost", "IP:127.0.0.1") for _ in range(2)]
    async with serving(authority, pairs[0]) as site:
        over = asyncio.Event()
        came = [0] * COMERS

        async def come(number: int) -> None:
            while not over.is_set():
                async with site.client() as client:
                    assert not await client.topics.list()
                came[number] += 1

        async with asyncio.TaskGroup() as tasks, dss_client.connect(endpoint=site.local) as admin:
            for number in range(COMERS):
                tasks.create_task(come(number), name=f"comer {number}")
            told = aiter(admin.events.watch(after=0))
            for renewal in range(1, RENEWALS + 1):
                if renewal % 2:
                    site.serve(pairs[(renewal + 1) // 2 % 2])
                    await _until(told, "certificate.changed")
                else:
                    (site.folder / "cert.pem").write_text("garbage")
                    await _until(told, "certificate.refused")
            over.set()
        assert all(came)


async def _until(told: AsyncIterator[dss_client.Event], code: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await anext(told)).code != code:
            pass
