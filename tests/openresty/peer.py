"""A TCP server that does what its clients ask for, one line of JSON after another."""

import asyncio
import json
import pathlib
import socket
import struct
import threading


class Peer:
    """Listens on `port`, and on the UNIX socket `path` if a directory is given.

    A line is a list of steps: a text is sent, a number is a pause in seconds, null closes the connection,
    {"slowly": TEXT} sends byte by byte, {"read": N} reads and drops N bytes, {"echo": N} sends N bytes back,
    {"reset": true} resets the connection, and {"gate": true} waits until the gate is opened.
    """

    def __init__(self, directory=None):
        self.path = pathlib.Path(directory) / "peer.sock" if directory else None
        self.port, self.accepted, self.open = None, 0, 0

    def __enter__(self):
        self.loop, ready = asyncio.new_event_loop(), threading.Event()

        async def begin():
            self.gate = asyncio.Event()
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=2048)
            self.port = server.sockets[0].getsockname()[1]
            if self.path:
                await asyncio.start_unix_server(self.serve, self.path)
            ready.set()

        def run():
            asyncio.set_event_loop(self.loop)
            self.loop.create_task(begin())
            self.loop.run_forever()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        assert ready.wait(20)
        return self

    def __exit__(self, *_):
        async def end():
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self.loop)
        self.thread.join(20)

    def open_gate(self):
        self.loop.call_soon_threadsafe(self.gate.set)

    async def serve(self, reader, writer):
        self.accepted += 1
        self.open += 1
        try:
            while line := await reader.readline():
                for step in json.loads(line):
                    await self.play(step, reader, writer)
                    if writer.is_closing():
                        return
        except (ConnectionError, asyncio.IncompleteReadError, json.JSONDecodeError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def play(self, step, reader, writer):
        match step:
            case None:
                writer.close()
            case str():
                writer.write(step.encode("latin-1"))
                await writer.drain()
            case {"slowly": text}:
                for byte in text.encode("latin-1"):
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0.001)
            case {"read": count}:
                await reader.readexactly(count)
            case {"echo": count}:
                writer.write(await reader.readexactly(count))
            case {"gate": _}:
                await self.gate.wait()
            case {"reset": _}:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.close()
            case _:
                await asyncio.sleep(step)
