"""A link of a given rate and delay in user space, where the kernel cannot shape one.

    client ─► relay ─► server     every chunk leaves when the ones before it have left,
                                  at the link's rate, and arrives ``delay`` later

It ends the TCP connections on both of its sides, so congestion control does not see
the delay: a real link is no faster than this.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

_CHUNK = 16 * 1024


@contextlib.contextmanager
def relayed(
    port: int,
    *,
    bits_per_second: float,
    delay_seconds: float,
    host: str = "127.0.0.1",
    listen: str = "127.0.0.1",
) -> Iterator[int]:
    """Relay connections to ``host``; yield the port of ``listen`` to connect to."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    link = _Link(host, port, bits_per_second / 8, delay_seconds)
    server = asyncio.run_coroutine_threadsafe(link.listen(listen), loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(_cancelled(loop))
        loop.close()


class _Link:
    def __init__(
        self, host: str, port: int, bytes_per_second: float, delay: float
    ) -> None:
        self._end = host, port
        self._rate = bytes_per_second
        self._delay = delay

    async def listen(self, host: str) -> asyncio.Server:
        return await asyncio.start_server(self._connected, host, 0)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there, back = await asyncio.open_connection(*self._end)
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send on what is read, each chunk at its time, until the end."""
        loop, free_at = asyncio.get_running_loop(), 0.0
        while chunk := await reader.read(_CHUNK):
            free_at = max(loop.time(), free_at) + len(chunk) / self._rate
            loop.call_at(free_at + self._delay, writer.write, chunk)
            await asyncio.sleep(free_at - loop.time())
        loop.call_at(free_at + self._delay, writer.close)


async def _cancelled(loop: asyncio.AbstractEventLoop) -> None:
    """End what still runs; this coroutine is the only one that stays."""
    others = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
