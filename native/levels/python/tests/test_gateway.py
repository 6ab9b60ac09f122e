"""Tests of the level that the gateway signs."""

import base64
import hashlib
import hmac
import os
import pathlib
import tempfile
import time
import unittest

from bywash_levels import Gateway, NotBelieved

KEY, OTHER_KEY = bytes([7] * 32), bytes([8] * 32)


def signed(key, seconds_ago=0):
    """Return the field that the gateway sends.

    The signature is an HMAC (RFC 2104) with a key for this purpose alone, in base64url.
    """

    def mac(key, text):
        return hmac.new(key, text, hashlib.sha256).digest()

    said = b"high;%d" % (time.time() - seconds_ago)
    tag = mac(mac(key, b"bywash level: sign"), said)
    return (said + b";" + base64.urlsafe_b64encode(tag).rstrip(b"=")).decode()


class TheGatewaysWord(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name, "level.keys")
        self.write(KEY.hex())

    def write(self, text, mode=0o600):
        self.path.write_text(text + "\n")
        self.path.chmod(mode)

    def test_what_it_has_signed_is_believed_for_a_minute(self):
        gateway = Gateway(self.path)
        self.assertEqual(gateway.level(signed(KEY)), "high")
        self.assertEqual(gateway.level(signed(KEY).encode()), "high")
        for field, why in [
            (signed(OTHER_KEY), "none of the keys"),
            (signed(KEY, seconds_ago=100), "too old"),
            (signed(KEY, seconds_ago=-100), "future"),
            (signed(KEY).replace("high", "low"), "none of the keys"),
            ("high", "not a level"),
            ("", "not a level"),
            ("\u00e4" * 1000, "too long"),
        ]:
            with self.subTest(why=why), self.assertRaisesRegex(NotBelieved, why):
                gateway.level(field)
        with self.assertRaises(TypeError):
            gateway.level(None)

    def test_keys_that_were_exchanged_are_found(self):
        gateway = Gateway(str(self.path))
        self.write(OTHER_KEY.hex())
        end = time.monotonic() + 60
        while True:
            try:
                self.assertEqual(gateway.level(signed(OTHER_KEY)), "high")
                break
            except NotBelieved:
                self.assertLess(time.monotonic(), end, "stuck")
                time.sleep(0.05)

    def test_a_file_that_is_none_is_refused(self):
        self.write("no key")
        with self.assertRaisesRegex(ValueError, "line 1 is not a key"):
            Gateway(self.path)
        self.write(KEY.hex(), mode=0o644)
        with self.assertRaisesRegex(PermissionError, "every user may read"):
            Gateway(self.path)
        self.path.unlink()
        with self.assertRaises(FileNotFoundError):
            Gateway(self.path)

    def test_the_child_of_a_fork_can_use_it(self):
        gateway = Gateway(self.path)
        child = os.fork()
        if child == 0:
            os._exit(0 if gateway.level(signed(KEY)) == "high" else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()
