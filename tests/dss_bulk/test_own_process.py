import asyncio
import threading

from dss_bulk.own_process import in_one_thread


def test_what_a_driver_does_outside_of_its_loop_is_done_by_one_thread() -> None:
    async def driving() -> set[str]:
        names = (asyncio.to_thread(lambda: threading.current_thread().name) for _ in range(50))
        return set(await asyncio.gather(*names))

    [name] = asyncio.run(in_one_thread(driving()))
    assert name.startswith("driver")
    assert not any(each.name == name for each in threading.enumerate()), "it ends with the driver"
