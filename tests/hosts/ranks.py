"""Ranks as processes, and what they say: see rank.c."""
import os
import signal
import subprocess
import threading
import time

TOKEN = "a token of the tests over hosts"


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


class Rank:
    """A process of rank.c. Its events are (word, time, rest)."""

    def __init__(self, command, environment, name):
        self.name = name
        self.events = []
        self.errors = []
        self.change = threading.Condition()
        full = {k: v for k, v in os.environ.items() if not k.startswith(("CLTRAIN_COMM", "RANK", "WORLD_", "MASTER_"))}
        full.update(environment)
        self.process = subprocess.Popen(command, env=full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, errors="replace", start_new_session=True)
        self.threads = [threading.Thread(target=self.read_events, daemon=True), threading.Thread(target=self.read_errors, daemon=True)]
        for thread in self.threads:
            thread.start()

    def read_events(self):
        for line in self.process.stdout:
            word, at, rest = (line.rstrip("\n").split(" ", 2) + ["", ""])[:3]
            with self.change:
                self.events.append((word, float(at), rest))
                self.change.notify_all()
        with self.change:
            self.events.append(("closed", time.monotonic(), ""))
            self.change.notify_all()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip("\n"))

    def find(self, word, nth=0):
        found = [e for e in self.events if e[0] == word]
        return found[nth] if len(found) > nth else None

    def expect(self, word, seconds=60, nth=0):
        """Waits for an event; a process that ends without it is a failure."""
        deadline = time.monotonic() + seconds
        with self.change:
            while not self.find(word, nth):
                left = deadline - time.monotonic()
                check(left > 0 and not self.find("closed"), f"{self.name} did not say '{word}': {self.tell()}")
                self.change.wait(min(left, 1))
            return self.find(word, nth)

    def expect_end(self, code, seconds=60):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} hangs: {self.tell()}") from None
        for thread in self.threads:
            thread.join(10)
        check(self.process.returncode == code, f"{self.name} gave {self.process.returncode}, not {code}: {self.tell()}")

    def tell(self):
        return f"{self.events[-6:]} {self.errors[-6:]}"

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            for thread in self.threads:
                thread.join(5)
            stream.close()


def place(rank, size, master, **more):
    """The environment of torchrun, and ours."""
    address, port = master.rsplit(":", 1)
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": "0", "MASTER_ADDR": address, "MASTER_PORT": port,
            "CLTRAIN_COMM_TOKEN": TOKEN, **more}


def arguments(**values):
    return [text for name, value in values.items() for text in ("--" + name, str(value))]


def check_reports(survivors, lost, since, seconds):
    """Each survivor ends with CLT_E_PEER and a detail that names the lost rank. Returns how long the last took."""
    longest = 0
    for rank in survivors:
        _, at, rest = rank.expect("ended", seconds + 30)
        check(rest.startswith("CLT_E_PEER "), f"{rank.name} ended with {rest}")
        check(f"rank {lost}" in rest, f"{rank.name} does not name rank {lost}: {rest}")
        longest = max(longest, at - since)
    check(longest <= seconds, f"reported after {longest:.3f} s, not {seconds}")
    return longest
