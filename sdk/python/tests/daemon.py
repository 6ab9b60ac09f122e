"""A fake stop daemon. `scripts/test-sdk-databases` tests with the real daemon."""

import os
import queue
import shutil
import socket
import tempfile
import threading

#: Seconds: longer than anything takes on a busy machine.
PATIENCE = 60


class Daemon:
    """A listener that answers each line as `answer` says.

    `answer` is a function from the words of a line to those of the answer, or to None for no
    answer.
    """

    def __init__(self, case, path=None):
        self.folder = tempfile.mkdtemp()
        self.path = path or os.path.join(self.folder, "stopd.sock")
        self.said = queue.Queue()
        self.clients = []
        self.answer = lambda words: "OK cancelled=0 spared=0" if words.startswith("STOP ") else "OK"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()
        case.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        case.addCleanup(self.die)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.clients.append(client)
            threading.Thread(target=self.hear, args=(client,), daemon=True).start()

    def hear(self, client):
        try:
            with client.makefile("r") as lines:
                for line in lines:
                    number, _, words = line.strip().partition(" ")
                    self.said.put((number, words))
                    client.sendall(self.reply(number, words).encode())
        except OSError:
            pass
        finally:
            client.close()

    def reply(self, number, words):
        """Return the text to send as the answer to a line; an empty text sends nothing."""
        answer = self.answer(words)
        return "" if answer is None else f"{number} {answer}\n"

    def say(self, text):
        self.clients[-1].sendall(text.encode())

    def next(self):
        """Return the words of the next received line."""
        return self.said.get(timeout=PATIENCE)[1]

    def lines(self):
        """Return the lines that were received so far."""
        lines = []
        while not self.said.empty():
            lines.append(self.said.get()[1])
        return lines

    def die(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.accepting.join(PATIENCE)
        for client in self.clients:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if os.path.exists(self.path):
            os.unlink(self.path)
