"""Tests that a link delays packets, loses some, and leaves nothing. Pairs of sockets replace its devices."""

import os
import socket
import unittest
from unittest import mock

from bywash_lab import lossy_link
from bywash_lab.lossy_link import DelayQueue, Host, LossyLink

NEAR, FAR = Host("near", "10.0.0.1"), [Host("one", "10.0.0.11"), Host("two", "10.0.0.12")]
SEED = 1


def packet(source: Host, target: Host, content: bytes, version: int = 4) -> bytes:
    """Returns a packet with the parts that the link reads."""
    return bytes([version << 4]) + bytes(11) + socket.inet_aton(source.address) + socket.inet_aton(target.address) + content


class Queue(unittest.TestCase):
    def test_packets_are_due_after_the_delay_in_their_order(self) -> None:
        queue = DelayQueue(0.1, 0, SEED)
        self.assertIsNone(queue.pause(0))
        for now, content in (1.0, b"a"), (1.0, b"b"), (1.05, b"c"):
            queue.put(now, content)
        self.assertAlmostEqual(queue.pause(1.07) or 0, 30)
        self.assertEqual(list(queue.due(1.09)), [])
        self.assertEqual(list(queue.due(1.11)), [b"a", b"b"])
        self.assertEqual(queue.pause(2), 0)
        self.assertEqual(list(queue.due(2)), [b"c"])

    def test_the_seed_decides_which_packets_are_lost(self) -> None:
        def left(seed: int) -> list[bytes]:
            queue = DelayQueue(0, 0.05, seed)
            for number in range(10_000):
                queue.put(0, number.to_bytes(2))
            found = list(queue.due(0))
            self.assertEqual((queue.taken, queue.lost), (10_000, 10_000 - len(found)))
            return found

        self.assertEqual(left(SEED), left(SEED))
        self.assertNotEqual(left(SEED), left(SEED + 1))
        self.assertAlmostEqual(len(left(SEED)), 9_500, delta=100)


class Link(unittest.TestCase):
    def begin(self, loss: float) -> LossyLink:
        """Begins a link. `self.hosts` are the sockets of its hosts."""
        self.hosts: dict[str, socket.socket] = {}
        self.commands: list[tuple[str, ...]] = []

        def make_device(namespace: str) -> int:
            ours, self.hosts[namespace] = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.hosts[namespace].settimeout(20)
            self.addCleanup(self.hosts[namespace].close)
            return ours.detach()

        link = LossyLink(NEAR, FAR, 0.01, loss, SEED)
        with mock.patch.multiple(lossy_link, make_device=make_device, ip=lambda *words: self.commands.append(words)):
            link.begin()
        return link

    def test_packets_reach_their_destination_in_both_directions(self) -> None:
        link = self.begin(loss=0)
        there, back = packet(NEAR, FAR[1], b"there"), packet(FAR[0], NEAR, b"back")
        for host, sent in ("near", there), ("one", back):
            # The link ignores a packet of IPv6, and one for a host that it does not know.
            self.hosts[host].send(packet(NEAR, FAR[0], b"", version=6))
            self.hosts[host].send(packet(NEAR, Host("none", "10.0.0.99"), b""))
            self.hosts[host].send(sent)
        self.assertEqual(self.hosts["two"].recv(99), there)
        self.assertEqual(self.hosts["near"].recv(99), back)
        self.assertEqual(link.end(), (2, 0))
        self.assertIn(("-n", "near", "route", "add", "10.0.0.12/32", "dev", "lossy", "src", "10.0.0.1"), self.commands)
        self.assertIn(("-n", "two", "route", "add", "10.0.0.1/32", "dev", "lossy", "src", "10.0.0.12"), self.commands)

    def test_the_end_closes_the_devices(self) -> None:
        before = os.listdir("/proc/self/fd")
        link = self.begin(loss=1)
        self.hosts["near"].send(packet(NEAR, FAR[0], b""))
        link.end()
        for host in self.hosts.values():
            # A packet that the link did not read resets the socket.
            with self.assertRaises(OSError):
                host.send(b"too late")
            host.close()
        self.assertEqual(os.listdir("/proc/self/fd"), before)

    def test_a_device_that_cannot_be_made_ends_the_link(self) -> None:
        before = os.listdir("/proc/self/fd")
        with mock.patch.object(lossy_link, "make_device", side_effect=[os.dup(0), OSError("no tun")]):
            with self.assertRaisesRegex(OSError, "no tun"):
                LossyLink(NEAR, FAR, 0.01, 0, SEED).begin()
        self.assertEqual(os.listdir("/proc/self/fd"), before)
