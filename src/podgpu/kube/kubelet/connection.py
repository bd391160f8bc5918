"""A connection to one of the kubelet's sockets that stays open between calls."""

import asyncio
from pathlib import Path

from grpclib.client import Channel
from grpclib.exceptions import GRPCError

from podgpu.kube.kubelet import rpc
from podgpu.kube.kubelet.rpc import AnswerRejected

SocketId = tuple[int, int, int]


class KubeletConnection:
    """Opens a connection when there is none, and again when the open one no longer works.

    A kubelet that restarts puts a new socket in place. The old kubelet may still run and answer with outdated lists,
    so the socket's file is checked before each call.
    """

    def __init__(self, socket: Path) -> None:
        self.socket_id: SocketId | None = None  # of the kubelet that was called last
        self._socket = socket
        self._channel: Channel | None = None

    async def answer(self, method: str) -> bytes:
        """Return a call's only answer. A kept connection that fails is replaced at once, and the call repeated."""
        if kept := self._kept():
            try:
                return await self._ask(kept, method)
            except (GRPCError, AnswerRejected):
                raise
            except Exception:
                if _is_cancelled():
                    raise
        return await self._ask(self._opened(), method)

    def close(self) -> None:
        if self._channel:
            self._channel.close()
            self._channel = None

    def _kept(self) -> Channel | None:
        if self._channel and _socket_id(self._socket) != self.socket_id:
            self.close()
        return self._channel

    def _opened(self) -> Channel:
        # Taken before connecting: if the socket is replaced in between, the next call notices.
        self.socket_id = _socket_id(self._socket)
        self._channel = rpc.open_channel(self._socket)
        return self._channel

    async def _ask(self, channel: Channel, method: str) -> bytes:
        try:
            return await rpc.answer(channel, method)
        except GRPCError:
            raise  # the kubelet itself says so: the connection works
        except BaseException:
            self.close()
            raise


def _socket_id(socket: Path) -> SocketId:
    """Return what changes when the file is replaced. An inode's number alone may be used again."""
    found = socket.stat()
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _is_cancelled() -> bool:
    """Say whether the caller's time is over: grpclib may raise its own error in place of the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
