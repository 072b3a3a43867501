"""The two workers as processes: a request is a line, and so is the answer."""
import json
import os
import select
import subprocess
import time


class SideError(Exception):
    pass


class Side:
    """A worker, started when it is first asked."""

    def __init__(self, command, environment, patience=600):
        self.command, self.environment, self.patience = command, environment, patience
        self.process = None
        self.started = None

    def start(self):
        self.started = time.perf_counter()
        self.process = subprocess.Popen(self.command, env={**os.environ, **self.environment}, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, **request):
        """The answer; SideError if it is one, or if the process ended or took too long."""
        if not self.process:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            ready = select.select([self.process.stdout], [], [], self.patience)[0]
            line = self.process.stdout.readline() if ready else b""
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.kill()
            raise SideError(f"{self.command[0]} gave no answer to {json.dumps(request)}")
        answer = json.loads(line)
        if "error" in answer:
            raise SideError(answer["error"])
        return answer

    def cpu_seconds(self):
        """Processor time that the process used so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def end(self):
        """Lets the process end by itself: it may have caches to save."""
        if self.process:
            self.process.stdin.close()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
