"""A daemon that is reached by TLS: who is let in, what they may, and when that ends.

Clients, commands and the daemon are real, and so are the certificates. Nothing here waits for a
time: what is to end is told by what ends.
"""

import asyncio
import gzip
import hashlib
import os
import time
from collections.abc import AsyncIterable, AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

import dss_client
from dss_bulk.driver import drive
from dss_bulk.local_engine import LOCAL
from dss_client.access import Permission
from dss_client.changes import CreateJob
from dss_client.job_values import SourceRange
from dss_core.default_paths import OPERATORS_SOCKET_NAME
from dss_core.errors import (
    DaemonNotTrusted,
    DssError,
    ExitCode,
    IllegalArgument,
    LoginRefused,
    OnlyBesideDaemon,
    OwnerRefused,
    PermissionDenied,
    SessionOfAnother,
    Unreachable,
)
from dss_spark.source.conditions import Conditions
from dss_spark.source.options import SourceOptions
from dss_spark.source.planning import planned
from support.certificates import Authority, Pair, replaced
from support.daemon_process import DaemonEnded, DaemonProcess, running, short_directory
from support.dssctl_call import Completed, call_dssctl

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all

PATIENCE_S = 30.0
ENDS_WITHIN_S = 1.0
"""What is promised of a call whose login ends."""
SLACK_S = 5.0
"""Of a machine that does other things."""


class Site:
    """A daemon with three listeners, what it serves, and who signs for it."""

    def __init__(self, process: DaemonProcess, folder: Path, authority: Authority) -> None:
        self.process = process
        self.folder = folder
        self.authority = authority
        self.local, self.tokens, self.certs, self.plain = process.endpoints

    def keep(self, name: str, token: str) -> Path:
        """A token in a file of its own."""
        path = self.folder / f"{name}.token"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token)
        return path

    async def token(self, name: str, *permissions: Permission) -> Path:
        """Somebody new with a token."""
        async with self.admin() as admin:
            made = await admin.access.add_token(name, permissions)
        return self.keep(name, made.token)

    def admin(self) -> dss_client.Client:
        """Who reaches the unix socket."""
        return dss_client.connect(endpoint=self.local)

    def remote(self, token_file: Path | None, client_id: str | None = None) -> dss_client.Client:
        """A client with a token."""
        return dss_client.connect(
            client_id,
            endpoint=self.tokens,
            ca=self.authority.cert,
            token_file=token_file,
            patient=False,
        )

    def with_certificate(self, pair: Pair) -> dss_client.Client:
        """A client with a certificate."""
        return dss_client.connect(
            endpoint=self.certs,
            ca=self.authority.cert,
            cert=pair.cert,
            key=pair.key,
            patient=False,
        )

    async def dssctl(self, *arguments: str) -> Completed:
        """A command over the unix socket, unless it says where else."""
        where = () if "--endpoint" in arguments else ("--endpoint", self.local)
        return await asyncio.to_thread(call_dssctl, *arguments, *where)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    pair = authority.signed("localhost", "DNS:localhost", "IP:127.0.0.1")
    with short_directory() as folder:
        replaced(folder / "cert.pem", pair.cert)
        replaced(folder / "key.pem", pair.key)
        arguments = (
            "--data-dir", f"{folder}/data", "--listen", f"unix:{folder}/s",
            "--listen", "127.0.0.1:0,tls,clients=tokens",
            "--listen", "127.0.0.1:0,tls,clients=certs",
            "--listen", "127.0.0.1:0,clients=tokens",
            "--tls-cert", f"{folder}/cert.pem", "--tls-key", f"{folder}/key.pem",
            "--tls-client-ca", str(authority.cert),
        )  # fmt: skip
        async with running(*arguments) as process:
            made = Site(process, folder, authority)
            async with made.admin() as admin:
                await admin.topics.create("orders", partitions=2)
                await admin.topics.create("payments", partitions=1)
            yield made
            assert await process.stop() == 0
            assert "Traceback" not in process.said
            for token in folder.glob("*.token"):
                assert token.read_text() not in process.said


async def refusal(client: dss_client.Client) -> DssError:
    with pytest.raises(DssError) as refused:
        await client.topics.list()
    return refused.value


async def test_who_is_not_known_is_not_let_in(site: Site) -> None:
    async with site.remote(None) as nobody:
        assert isinstance(await refusal(nobody), LoginRefused)
    async with site.remote(site.keep("wrong", "dss_" + "x" * 43)) as wrong:
        assert isinstance(await refusal(wrong), LoginRefused)
    async with dss_client.connect(endpoint=site.plain, patient=False) as loopback:
        assert isinstance(await refusal(loopback), LoginRefused)
    async with site.admin() as admin:
        told = [each async for each in _events(admin, "login.refused")]
    assert {each.fields["reason"] for each in told}


async def _events(client: dss_client.Client, code: str) -> AsyncIterator[dss_client.Event]:
    page = await client.events.list()
    for event in page.events:
        if event.code == code:
            yield event


async def test_a_token_reads_by_its_filters_and_nothing_else(site: Site) -> None:
    consume = Permission("consume", ("orders/#",), ("billing*",))
    path = await site.token("reader", consume, Permission("produce", ("orders/eu/#",)))
    async with site.remote(path, "reader") as reader:
        assert [each.topic.name for each in await reader.topics.list()] == ["orders"]
        async with reader.producer("orders") as producer:
            await producer.send(b"1", subject="orders/eu/1")
            with pytest.raises(PermissionDenied) as denied:
                await producer.send(b"2", subject="orders/us/1")
            assert "--role produce --topic orders/us/1" in denied.value.hint_text
            await producer.send(b"3", subject="orders/eu/2")
        async with reader.subscribe("$share/billing-1/orders/#", start="earliest") as records:
            payloads = set()
            async for record in records:
                payloads.add(record.payload)
                record.ack()
                if len(payloads) == 2:
                    break
        assert payloads == {b"1", b"3"}
        for change in (
            reader.topics.remove("orders"),
            reader.topics.describe("payments"),
            reader.groups.describe("shipping"),
            reader.access.list(),
            reader.events.list(),
        ):
            with pytest.raises(PermissionDenied):
                await change
    async with site.remote(path) as reader:
        with pytest.raises(PermissionDenied):
            async with reader.subscribe("$share/shipping/orders/#") as records:
                await anext(aiter(records))


async def test_a_session_is_its_principals(site: Site) -> None:
    consume = Permission("consume", ("orders/#",), ("billing*",))
    first, second = await site.token("one", consume), await site.token("two", consume)
    async with (
        site.remote(first, "shared-name") as one,
        one.subscribe("$share/billing-2/orders/#", start="earliest") as records,
    ):
        await anext(aiter(records))
        async with site.remote(second, "shared-name") as two:
            with pytest.raises(SessionOfAnother):
                async with two.subscribe("$share/billing-2/orders/#") as stolen:
                    await anext(aiter(stolen))
        async with site.admin() as admin:
            owners = {each.client_id: each.principal for each in await admin.sessions.list()}
        assert owners["shared-name"] == "token:one"
        taken = await site.dssctl("sessions", "adopt", "shared-name", "--to", "token:two", "-y")
        assert b"DSS2235" in taken.stderr, "its client is connected"
    typo = await site.dssctl("sessions", "adopt", "shared-name", "--to", "token:tow", "-y")
    assert b"DSS2066" in typo.stderr
    given = await site.dssctl("sessions", "adopt", "shared-name", "--to", "token:two", "-y")
    assert given.returncode == 0, given.stderr
    async with (
        site.remote(second, "shared-name") as two,
        two.subscribe("$share/billing-2/orders/#") as records,
    ):
        await anext(aiter(records))
    async with site.remote(first, "shared-name") as one:
        with pytest.raises(SessionOfAnother):
            async with one.subscribe("$share/billing-2/orders/#") as records:
                await anext(aiter(records))


async def test_a_login_that_ends_ends_its_calls_within_a_second(site: Site) -> None:
    path = await site.token("gone", Permission("consume", ("orders/#",), ("billing*",)))
    async with (
        site.remote(path) as client,
        client.subscribe("$share/billing-3/orders/#", start="earliest") as records,
        site.remote(path) as other,
    ):
        await anext(aiter(records))
        reading = asyncio.create_task(_taken(other.read("orders/#", follow=True)))
        async with site.admin() as admin:
            removed_s = time.monotonic()
            await admin.access.remove("token:gone")
        async with asyncio.timeout(PATIENCE_S):
            for taking in (_taken(records), reading):
                with pytest.raises(LoginRefused):
                    await taking
    assert time.monotonic() - removed_s < ENDS_WITHIN_S + SLACK_S


async def _taken(items: AsyncIterable[object]) -> None:
    """Take what comes until no more does."""
    async for _ in items:
        pass


async def test_other_permissions_hold_for_calls_that_run(site: Site) -> None:
    path = await site.token("narrowed", Permission("produce", ("orders/#",)))
    async with site.remote(path) as client, client.producer("orders") as producer:
        await producer.send(b"x", subject="orders/us/1")
        async with site.admin() as admin:
            await admin.access.edit("token:narrowed", [Permission("produce", ("orders/eu/#",))])
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(PermissionDenied):
                await _sent_again_and_again(producer, "orders/us/1")
        await producer.send(b"x", subject="orders/eu/1")


async def _sent_again_and_again(producer: dss_client.Producer, subject: str) -> None:
    """Until the call that runs is begun anew, and then refused."""
    while True:
        await producer.send(b"x", subject=subject)


async def test_who_is_denied_loses_running_calls_and_is_let_in_again_by_an_edit(
    site: Site,
) -> None:
    read = Permission("read", ("#",), ("*",))
    path = await site.token("denied", read)
    async with site.remote(path) as client:
        watching = asyncio.create_task(_taken(client.events.watch()))
        assert await client.topics.list()
        told = await site.dssctl("principals", "deny", "token:denied", "-y")
        assert told.returncode == ExitCode.OK, told.stderr
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(PermissionDenied):
                await watching
        assert isinstance(await refusal(client), PermissionDenied)
        async with site.admin() as admin:
            await admin.access.edit("token:denied", [read])
        assert await client.topics.list()


async def test_who_still_may_goes_on_over_other_permissions_and_another_token(site: Site) -> None:
    consume = Permission("consume", ("orders/#",), ("billing*",))
    path = await site.token("stays", consume)
    async with (
        site.admin() as admin,
        site.remote(path) as client,
        client.subscribe("$share/billing-4/orders/#") as records,
        admin.producer("orders") as producer,
    ):
        taking = aiter(records)
        for change in ("other permissions", "another token"):
            await producer.send(change.encode())
            record = await anext(taking)
            assert record.payload == change.encode()
            await record.ack(sync=True)
            running = await _attached_since(admin, client.client_id)
            if change == "other permissions":
                await admin.access.edit("token:stays", [consume, Permission("read", ("#",))])
            else:
                made = await admin.access.rotate_token("stays")
                site.keep("stays", made.token)
            await _attached_anew(admin, client.client_id, running)
        await producer.send(b"the end")
        assert (await anext(taking)).payload == b"the end"


async def _attached_anew(admin: dss_client.Client, client_id: str, before: int | None) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            since = await _attached_since(admin, client_id)
            if since not in (None, before):
                return
            await asyncio.sleep(0.05)


async def _attached_since(admin: dss_client.Client, client_id: str) -> int | None:
    """Since when its session is connected; None while it is not."""
    (found,) = [each for each in await admin.sessions.list() if each.client_id == client_id]
    return found.since_ms if found.state == "connected" else None


async def test_certificates_let_in_by_their_names(site: Site) -> None:
    async with site.admin() as admin:
        await admin.access.add_certificate("worker", [Permission("read", ("#",), ("*",))])
        await admin.access.add_certificate("brief", [Permission("read", ("#",), ("*",))])
    async with site.with_certificate(site.authority.signed("worker")) as worker:
        assert len(await worker.topics.list()) == 2
        with pytest.raises(PermissionDenied, match="cert:worker"):
            await worker.topics.remove("orders")
    async with site.with_certificate(site.authority.signed("stranger")) as stranger:
        assert isinstance(await refusal(stranger), LoginRefused)
    async with site.with_certificate(
        site.authority.signed("worker", begins=timedelta(hours=-2), ends=timedelta(hours=-1))
    ) as expired:
        assert isinstance(await refusal(expired), Unreachable)
    async with site.admin() as admin:
        await admin.access.remove("cert:worker")
    async with site.with_certificate(site.authority.signed("worker")) as removed:
        assert isinstance(await refusal(removed), LoginRefused)


async def test_a_call_ends_with_the_certificate_it_came_in_with(site: Site) -> None:
    brief = site.authority.signed("brief", ends=timedelta(seconds=4))
    async with site.with_certificate(brief) as client, asyncio.timeout(PATIENCE_S):
        with pytest.raises((LoginRefused, PermissionDenied, Unreachable)):
            await _taken(client.events.watch())


async def test_a_client_shows_the_certificate_that_its_file_has_now(
    site: Site, tmp_path: Path
) -> None:
    before, after = site.authority.signed("before"), site.authority.signed("after")
    own = Pair(tmp_path / "cert.pem", tmp_path / "key.pem")
    replaced(own.cert, before.cert)
    replaced(own.key, before.key)
    async with site.admin() as admin:
        await admin.access.add_certificate("before", [Permission("read", ("#",))])
        await admin.access.add_certificate("after", [Permission("read", ("#",))])
        async with site.with_certificate(own) as client:
            assert await client.topics.list()
            await admin.access.remove("cert:before")
            replaced(own.cert, after.cert)
            assert isinstance(await refusal(client), LoginRefused), "its key is not there yet"
            replaced(own.key, after.key)
            assert await client.topics.list()


async def test_a_daemon_that_cannot_be_trusted_is_not_talked_to(site: Site, tmp_path: Path) -> None:
    path = await site.token("careful", Permission("read", ("#",)))
    other = Authority(tmp_path, "other")
    port = site.tokens.rpartition(":")[2]
    for endpoint, ca in ((site.tokens, other.cert), (site.tokens, None)):
        async with dss_client.connect(
            endpoint=endpoint, ca=ca, token_file=path, patient=False
        ) as client:
            assert isinstance(await refusal(client), DaemonNotTrusted)
    async with dss_client.connect(
        endpoint=f"dss://localhost:{port}", ca=site.authority.cert, token_file=path, patient=False
    ) as client:
        assert await client.topics.list()
    async with dss_client.connect(endpoint=f"127.0.0.1:{port}", patient=False) as plain:
        assert isinstance(await refusal(plain), Unreachable)


async def test_a_certificate_that_changes_is_served_and_garbage_is_not(
    site: Site, tmp_path: Path
) -> None:
    path = await site.token("renewing", Permission("read", ("#",), ("*",)))
    new = Authority(tmp_path, "new")
    pair = new.signed("localhost", "IP:127.0.0.1")
    old = {name: (site.folder / name).read_bytes() for name in ("cert.pem", "key.pem")}
    async with site.remote(path) as staying, site.admin() as admin:
        assert await staying.topics.list()
        checked = await site.dssctl("check", "certificate", "--warn", "30m", "--crit", "10m")
        assert checked.returncode == 0, checked.stdout
        (site.folder / "cert.pem").write_bytes(b"garbage")
        await _told(admin, "certificate.refused")
        checked = await site.dssctl("check", "certificate", "--warn", "30m", "--crit", "10m")
        assert (checked.returncode, b"not served" in checked.stdout) == (2, True)
        doctor = await site.dssctl("doctor", "--only-trouble", "-o", "json")
        assert b'"daemon.certificate"' in doctor.stdout
        async with site.remote(path) as client:
            assert await client.topics.list()
        replaced(site.folder / "key.pem", pair.key)
        replaced(site.folder / "cert.pem", pair.cert)
        await _told(admin, "certificate.changed")
        async with dss_client.connect(
            endpoint=site.tokens, ca=new.cert, token_file=path, patient=False
        ) as client:
            assert await client.topics.list()
        async with site.remote(path) as client:
            assert isinstance(await refusal(client), DaemonNotTrusted)
        assert await staying.topics.list(), "a connection goes on with what it began with"
        for name, content in old.items():
            (site.folder / name).write_bytes(content)
        await _told(admin, "certificate.changed", times=2)


async def _told(client: dss_client.Client, code: str, times: int = 1) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async for event in client.events.watch(after=0):
            times -= event.code == code
            if not times:
                return


async def test_a_driver_on_another_host_brings_what_it_stages(site: Site) -> None:
    async with site.admin() as admin:
        await admin.topics.create("copies", partitions=2)
        async with admin.producer("orders") as producer:
            await producer.send_columns(payloads=[b"%0500d" % each for each in range(500)])
        change = CreateJob("far", "replay", source="orders", target="copies", chunk_bytes=64 << 10)
        await admin.operations.apply(await admin.operations.plan(change), reason="a test")
        reads, writes = Permission("consume", ("orders/#",)), Permission("produce", ("copies/#",))
        half = await site.token("half-a-driver", reads)
        async with site.remote(half) as driver:
            with pytest.raises(PermissionDenied, match="produce copies/#"):
                await drive(driver, "far", engine=LOCAL)
        async with site.remote(await site.token("driver", reads, writes)) as driver:
            job = await drive(driver, "far", engine=LOCAL)
            runs = driver.stored_runs(SourceRange("orders/0/0", 1, 0, 0, 1))
            with pytest.raises(OnlyBesideDaemon):
                await anext(runs)
        copied = [each.payload async for each in admin.read("copies/#")]
        assert sorted(copied) == sorted([each.payload async for each in admin.read("orders/#")])
        assert (job.state, job.records) == ("done", len(copied))


async def test_schedules_and_jobs_stop_with_whom_they_act_for(site: Site) -> None:
    rights = (
        Permission("operate", ("#",), ("*",)),
        Permission("consume", ("orders/#",)),
        Permission("produce", ("spare/#",)),
    )
    path = await site.token("leaver", *rights)
    there = ("--endpoint", site.tokens, "--tls-ca", str(site.authority.cert))
    own = (*there, "--token-file", str(path))
    await site.dssctl("topics", "create", "spare")
    for command in (
        ("schedules", "create", "kept", "--task", "checkpoint", "--cron", "0 3 1 1 *", "-y"),
        ("replays", "create", "left", "--from", "orders", "--to", "spare", "--no-drive", "-y"),
    ):
        made = await site.dssctl(*command, *own)
        assert made.returncode == 0, made.stderr
    run = await site.dssctl("schedules", "trigger", "kept", "--wait", *own)
    assert run.returncode == 0, run.stderr
    operations = await site.dssctl("ops", "ls", "-o", "json")
    assert b'"the daemon itself, for token:leaver"' in operations.stdout
    await site.dssctl("tokens", "rm", "leaver", "-y")
    run = await site.dssctl("schedules", "trigger", "kept", "--wait")
    assert run.returncode == ExitCode.DENIED
    assert b"acts for token:leaver, who may not call any longer" in run.stderr
    async with site.admin() as admin:
        with pytest.raises(OwnerRefused, match="The job left acts for token:leaver"):
            await drive(admin, "left", engine=LOCAL)
    for noun, name in (("schedules", "kept"), ("jobs", "left")):
        shown = await site.dssctl(noun, "describe", name, "-o", "json")
        assert b'"principal": "token:leaver"' in shown.stdout


async def test_the_data_source_of_spark_reads_with_the_files_that_its_options_name(
    site: Site,
) -> None:
    path = await site.token("spark", Permission("consume", ("orders/#",)))
    given = {"endpoint": site.tokens, "topic": "orders", "ca": str(site.authority.cert)}
    options = SourceOptions.of({**given, "token_file": str(path)})
    assert path.read_text() not in repr(options)
    async with options.client() as client:
        ranges = await planned(client, options, Conditions())
    assert {each.range.stream for each in ranges} == {"orders/0/0", "orders/0/1"}
    with pytest.raises(LoginRefused):
        async with SourceOptions.of(given).client() as client:
            await planned(client, options, Conditions())
    with pytest.raises(IllegalArgument) as refused:
        SourceOptions.of({**given, "token_file": path.read_text()}).client()
    assert path.read_text() not in str(refused.value)


async def test_commands_give_change_and_take_tokens(site: Site) -> None:
    path = site.folder / "cli.token"
    told = await site.dssctl(
        "tokens", "add", "cli", "--role", "read", "--topic", "orders/#", "--expires", "90d",
        "--to", str(path), "-o", "json",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert path.read_text().strip().encode() not in told.stdout + told.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    there = ("--endpoint", site.tokens, "--tls-ca", str(site.authority.cert))
    own = (*there, "--token-file", str(path))
    listed = await site.dssctl("topics", "ls", "-o", "name", *own)
    assert (listed.returncode, listed.stdout) == (0, b"orders\n")
    denied = await site.dssctl("topics", "rm", "orders", "-y", *own)
    assert denied.returncode == ExitCode.DENIED
    assert b"DSS5009" in denied.stderr
    unknown = await site.dssctl("topics", "ls", *there)
    assert unknown.returncode == ExitCode.DENIED
    assert b"DSS5013" in unknown.stderr
    await site.dssctl("tokens", "rotate", "cli", "--to", f"{path}.new")
    for each in (path, f"{path}.new"):
        both = await site.dssctl("topics", "ls", *there, "--token-file", str(each))
        assert both.returncode == 0, both.stderr
    shown = await site.dssctl("principals", "ls", "token:cli", "-o", "json")
    assert b'"read orders/#"' in shown.stdout
    removed = await site.dssctl("tokens", "rm", "cli", "-y", "-o", "json")
    assert removed.returncode == 0
    assert (await site.dssctl("topics", "ls", *own)).returncode == ExitCode.DENIED
    audit = await site.dssctl("audit", "ls", "-o", "json", "--filter", "subject=token:cli")
    assert audit.stdout.count(b'"subject": "token:cli"') == 3
    wrong = await site.dssctl("tokens", "add", "bad", "--role", "owner", "--topic", "#")
    assert wrong.returncode != 0
    assert b"token:bad" not in (await site.dssctl("tokens", "ls", "-o", "name")).stdout


async def test_administrators_get_in_where_only_remote_listeners_are(site: Site) -> None:
    reserve = f"unix:{site.folder}/data/{OPERATORS_SOCKET_NAME}"
    async with dss_client.connect(endpoint=reserve) as admin:
        made = await admin.access.add_token("first", [Permission("admin")])
    async with site.remote(site.keep("first", made.token)) as remote:
        assert "token:first" in {each.name for each in await remote.access.list()}


async def test_contexts_keep_where_the_files_are_and_show_them_to_no_other_daemon(
    site: Site, tmp_path: Path
) -> None:
    path = await site.token("context", Permission("read", ("orders/#",)))
    configuration = {"DSSCTL_CONFIG": str(tmp_path / "config.toml")}

    async def dssctl(*arguments: str) -> Completed:
        return await asyncio.to_thread(call_dssctl, *arguments, environ=configuration)

    added = await dssctl(
        "contexts", "add", "there", "--endpoint", site.tokens,
        "--tls-ca", str(site.authority.cert), "--token-file", str(path),
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    listed = await dssctl("-c", "there", "topics", "ls", "-o", "name")
    assert (listed.returncode, listed.stdout) == (0, b"orders\n")
    elsewhere = await dssctl("-c", "there", "topics", "ls", "--endpoint", site.plain)
    assert elsewhere.returncode == ExitCode.DENIED
    assert b"it sent no token" in elsewhere.stderr
    added = await dssctl("contexts", "add", "bare", "--endpoint", site.plain)
    assert added.returncode == 0, added.stderr
    valid = await dssctl("-c", "there", "contexts", "validate", "-o", "template={name} {valid}")
    assert valid.stdout.splitlines() == [b"there true", b"bare false"]


async def test_nothing_that_lets_anybody_in_is_told_or_kept(site: Site) -> None:
    path = await site.token("secret", Permission("read", ("#",), ("*",)))
    text = path.read_text()
    forms = [text.encode(), hashlib.sha256(text.encode()).hexdigest().encode()]
    forms.append(forms[0].removeprefix(b"dss_"))
    there = ("--endpoint", site.tokens, "--tls-ca", str(site.authority.cert))
    bundle = site.folder / "bundle.tar.gz"
    told = [
        await site.dssctl(*command, *there, "--token-file", str(path))
        for command in (
            ("events", "-o", "json"),
            ("audit", "ls", "-o", "json"),
            ("doctor", "-o", "json"),
            ("sessions", "ls", "-o", "json"),
            ("config", "show", "-o", "json"),
            ("support", "gather", str(bundle)),
        )
    ]
    said = b"".join(each.stdout + each.stderr for each in told)
    said += gzip.decompress(bundle.read_bytes()) + site.process.said.encode()
    said += await asyncio.to_thread(Path(f"/proc/{site.process.process.pid}/cmdline").read_bytes)
    assert b"token:secret" in said, "who it is for may be told"
    assert not [form for form in forms if form in said]
    rows = b"".join(each.read_bytes() for each in (site.folder / "data").glob("store.sqlite*"))
    assert text.encode() not in rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", "0.0.0.0:7233"), "ssh -L"),
        (("--listen", "0.0.0.0:7233,clients=tokens"), "ssh -L"),
        (("--listen", "127.0.0.1:0,tls"), "say who is served"),
        (("--listen", "127.0.0.1:0,tls,clients=everybody"), "everybody"),
        (("--listen", "127.0.0.1:0,clients=certs"), "certificates need TLS"),
        (("--listen", "127.0.0.1:0,tls,clients=tokens"), "--tls-cert and --tls-key"),
        (("--listen", "127.0.0.1:0", "--tls-cert", "c.pem"), "no listener has TLS"),
        (
            ("--listen", "127.0.0.1:0,tls,clients=tokens", "--tls-cert", "c", "--tls-key", "k"),
            "No such file",
        ),
    ],
)
async def test_a_policy_that_keeps_nobody_out_is_refused_with_what_to_write(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(DaemonEnded) as ended:
        await DaemonProcess.start("--data-dir", str(tmp_path), *arguments)
    assert ended.value.exit_code == ExitCode.CONFIG
    assert said in ended.value.said
