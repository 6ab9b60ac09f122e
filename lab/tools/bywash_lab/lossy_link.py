"""A link between network namespaces that delays packets and loses some of them.

It replaces `tc qdisc add ... netem delay 100ms loss 5%` on kernels without `sch_netem`. It affects only
the packets between one host and some others. Each host gets a TUN device, and a route through it to the
other end. A thread reads packets from the devices, and writes each one to the device of its destination
when the delay is over. The addresses stay, so open connections go on over the link, and after it.

When the script ends for any reason, its file descriptors end, and so do the devices and their routes.
Source: Documentation/networking/tuntap.rst of Linux, setns(2).
"""

import collections
import contextlib
import ctypes
import fcntl
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

DEVICE = "lossy"
# From linux/if_tun.h and linux/sched.h.
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
LARGEST = 2048  # bytes, more than the MTU of the devices, which is 1500


class Host(NamedTuple):
    """A namespace of `ip netns`, and the IPv4 address that it has on its usual device."""

    namespace: str
    address: str


class DelayQueue:
    """Packets until their delay is over. Loses a packet with the probability `loss`, drawn from `seed`."""

    def __init__(self, delay: float, loss: float, seed: int) -> None:
        self.delay, self.loss, self.random = delay, loss, random.Random(seed)
        self.waiting: collections.deque[tuple[float, bytes]] = collections.deque()
        self.taken = self.lost = 0

    def put(self, now: float, packet: bytes) -> None:
        """Takes or loses a packet at the time `now`, in seconds."""
        self.taken += 1
        if self.random.random() < self.loss:
            self.lost += 1
        else:
            self.waiting.append((now + self.delay, packet))

    def due(self, now: float) -> Iterator[bytes]:
        """Removes and returns the packets whose delay is over, in their order."""
        while self.waiting and self.waiting[0][0] <= now:
            yield self.waiting.popleft()[1]

    def pause(self, now: float) -> float | None:
        """Returns the milliseconds until the next packet is due, or None without a packet."""
        return max(0.0, self.waiting[0][0] - now) * 1e3 if self.waiting else None


class LossyLink:
    """A link between the host `near` and each host of `far`, which exists from `begin` to `end`.

    Each packet takes `delay` seconds longer, in both directions. So a round trip takes twice that.
    `loss` is the probability in each direction. The hosts of `far` reach each other as usual.
    """

    def __init__(self, near: Host, far: Sequence[Host], delay: float, loss: float, seed: int) -> None:
        self.near, self.far, self.queue = near, far, DelayQueue(delay, loss, seed)
        # The devices by the addresses of their hosts.
        self.devices: dict[bytes, int] = {}
        self.ending, self.thread = -1, threading.Thread()

    def begin(self) -> None:
        """Makes the devices and their routes. Packets that are on their way meanwhile may be lost."""
        self.queue.taken = self.queue.lost = 0
        self.ending = os.eventfd(0)
        try:
            for host in (self.near, *self.far):
                self.devices[socket.inet_aton(host.address)] = make_device(host.namespace)
            self.thread = threading.Thread(target=self.forward, daemon=True)
            self.thread.start()
            for host in self.far:
                for source, target in (self.near, host), (host, self.near):
                    # Without `src`, the source would be another address, since the device has none.
                    ip("-n", source.namespace, "route", "add", f"{target.address}/32", "dev", DEVICE, "src", source.address)
        except BaseException:
            self.end()
            raise

    def end(self) -> tuple[int, int]:
        """Removes the devices. Returns how many packets the link took, and how many of these it lost at random.

        Packets in the queue are lost too, as when netem is removed.
        """
        os.eventfd_write(self.ending, 1)
        if self.thread.is_alive():
            self.thread.join()
        for file in (self.ending, *self.devices.values()):
            os.close(file)
        self.devices.clear()
        self.queue.waiting.clear()
        return self.queue.taken, self.queue.lost

    def forward(self) -> None:
        """Forwards packets until `end`."""
        poll = select.poll()
        for file in (self.ending, *self.devices.values()):
            poll.register(file, select.POLLIN)
        while True:
            ready = [file for file, _ in poll.poll(self.queue.pause(time.monotonic()))]
            if self.ending in ready:
                return
            for file in ready:
                packet = os.read(file, LARGEST)
                # The kernel also sends IPv6 packets that look for routers.
                if packet[0] >> 4 == 4 and packet[16:20] in self.devices:
                    self.queue.put(time.monotonic(), packet)
            for packet in self.queue.due(time.monotonic()):
                # A host without memory for a packet loses it.
                with contextlib.suppress(OSError):
                    os.write(self.devices[packet[16:20]], packet)


def make_device(namespace: str) -> int:
    """Makes a TUN device in a namespace. Returns its file descriptor."""
    with open("/proc/thread-self/ns/net") as usual, open(f"/var/run/netns/{namespace}") as other:
        enter(other.fileno())
        try:
            file = os.open("/dev/net/tun", os.O_RDWR)
        finally:
            enter(usual.fileno())
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    ip("-n", namespace, "link", "set", DEVICE, "up")
    return file


def enter(namespace: int) -> None:
    """Lets this thread, and no other, be in a network namespace."""
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
