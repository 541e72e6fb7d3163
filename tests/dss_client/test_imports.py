import subprocess
import sys


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after the statement."""
    script = f"{statement}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_client_loads_neither_grpc_nor_arrow_nor_messages() -> None:
    loaded = loaded_by("import dss_client")
    assert {"grpc", "pyarrow", "google.protobuf", "dss_api"} & loaded == set()


def test_administration_loads_no_arrow_and_no_hot_path() -> None:
    loaded = loaded_by(
        "import asyncio, dss_client\n"
        "async def look():\n"
        "    async with dss_client.connect(endpoint='unix:/nowhere/d.sock') as client:\n"
        "        try: await client.topics.list()\n"
        "        except dss_client.DssError: pass\n"
        "asyncio.run(look())"
    )
    assert "grpc" in loaded
    assert {"pyarrow", "dss_client.session", "dss_client._produce_call"} & loaded == set()
