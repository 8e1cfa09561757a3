"""A guide's commands, taken from the page and run as a reader would.

```python title="make.py"   a file that the reader writes
```sh                       commands that end, one after the other
```sh title="server"        one command in a terminal of its own, which goes on

A terminal takes its next command when the last one has ended. After ``serve`` and
``join`` the reader looks at the server, which says that it listens and who has come.
Whoever comes ``late`` waits for a word of the server first, and the others stand still
until it has come: on a small part of the data the run would be over before that.
Nothing but the port is changed, so that walks can be run beside each other.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from lab.ports import free_port
from lab.processes import wait_until

GUIDES = Path(__file__).parents[3] / "docs" / "guides"
BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<code>.*?)^```$',
    re.M | re.S,
)
SECONDS = 400


class Walk:
    """One guide, walked in an empty folder."""

    def __init__(self, page, folder, zygote, environment, *, late=None):
        self.folder = folder
        self._text = (GUIDES / page).read_text().replace(":7443", f":{free_port()}")
        self._zygote = zygote
        self._environment = environment
        self._late = dict(late or {})
        self._terminals = {}
        self._started = 0

    def go(self):
        """Run every block of the page, in order."""
        for block in BLOCK.finditer(self._text):
            language, title, code = block["language"], block["title"], block["code"]
            if language != "sh":
                assert title, f"a block of {language} that no file is named for"
                (self.folder / title).write_text(code)
                continue
            lines = code.replace("\\\n", "").strip().splitlines()
            commands = [shlex.split(line) for line in lines]
            for command in commands:
                self._run(command, title)
        server = self._terminals.pop("server")
        for process in self._terminals.values():
            self._end(process)
        server.signal(signal.SIGINT)  # the page ends with a server that predicts
        assert server.wait(SECONDS) in (0, 130), server.text

    def _run(self, command, terminal):
        program, *words = command
        if program == "pip":
            return  # it is installed
        if program == "python":
            self._python(words)
            return
        assert program == "lightsplit", command
        if terminal is None:
            assert self._start(words).wait(SECONDS) == 0, self._last.text
            return
        if terminal in self._terminals:
            self._end(self._terminals[terminal])
        with self._standing_still(terminal):
            self._terminals[terminal] = self._start(words)
            self._look(words)

    @contextmanager
    def _standing_still(self, terminal):
        """Let the owners stand while one that is late comes; all others just start."""
        said = self._late.pop(terminal, None)
        if said is None:
            yield
            return
        self._wait(said, self._terminals["server"])
        owners = [one for name, one in self._terminals.items() if name != "server"]
        for owner in owners:
            owner.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for owner in owners:
                owner.signal(signal.SIGCONT)

    def _end(self, process):
        """Wait until a command has ended well; stop at once if any other has failed."""
        known = self._terminals.values()
        wait_until(
            lambda: process.code is not None or any(one.code for one in known),
            "the end of a command",
            SECONDS,
        )
        failed = [one for one in (*known, process) if one.code]
        assert not failed, failed[0].text

    def _start(self, words):
        self._started += 1
        log = self.folder / f"{self._started}.log"
        self._last = self._zygote.start(log, *words, cwd=self.folder)
        return self._last

    def _python(self, words):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**os.environ, **self._environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr

    def _look(self, words):
        """Wait for what the server says after ``serve`` and after ``join``."""
        said = {"serve": "listening on port"}
        if words[0] == "join":
            said["join"] = f"{words[words.index('--name') + 1]} has come"
        if words[0] in said:
            server = self._terminals["server"]
            self._wait(said[words[0]], server)

    def _wait(self, text, server):
        mine = self._last
        wait_until(
            lambda: (
                text in server.text
                or mine.code not in (None, 0)
                or server.code is not None
            ),
            text,
            SECONDS,
        )
        assert text in server.text, f"{server.text}\n{mine.text}"
