"""Hosts as network namespaces: two bridges, each in a namespace of its own, and a pair of interfaces a host.

    net eth0: 10.77.0.1 …    net eth1: 10.78.0.1 …    (host i has .i+1)
"""
import os
import subprocess


class Unavailable(Exception):
    """Namespaces cannot be made here."""


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


class Hosts:
    def __init__(self, n):
        self.tag = f"clt{os.getpid()}"
        self.names = []
        self.n = n
        try:
            self.switch = self.add_namespace("sw")
            for net in (0, 1):
                self.ip(self.switch, "link", "add", f"br{net}", "type", "bridge")
                self.ip(self.switch, "link", "set", f"br{net}", "up")
            self.hosts = [self.add_host(i) for i in range(n)]
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            self.close()
            raise Unavailable(getattr(error, "stderr", None) or str(error)) from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in self.names:
            run("ip", "netns", "delete", name, check=False)
        self.names = []

    def add_namespace(self, what):
        name = f"{self.tag}-{what}"
        run("ip", "netns", "add", name)
        self.names.append(name)
        self.ip(name, "link", "set", "lo", "up")
        return name

    def ip(self, name, *words):
        return run("ip", "-n", name, *words)

    def add_host(self, i):
        name = self.add_namespace(str(i))
        for net in (0, 1):
            far = f"v{i}n{net}"
            self.ip(self.switch, "link", "add", far, "type", "veth", "peer", "name", f"eth{net}", "netns", name)
            self.ip(self.switch, "link", "set", far, "master", f"br{net}", "up")
            self.ip(name, "address", "add", f"{self.address(i, net)}/24", "dev", f"eth{net}")
            self.ip(name, "link", "set", f"eth{net}", "up")
        return name

    @staticmethod
    def address(i, net=0):
        return f"10.{77 + net}.0.{i + 1}"

    def command(self, i, *words):
        """To be run on host i. ip itself becomes the command: its number is the rank's."""
        return ["ip", "netns", "exec", self.hosts[i], *words]

    def run(self, i, *words, check=True):
        return run(*self.command(i, *words), check=check)

    def cut(self, i):
        """Nothing passes any more, and nobody is told."""
        self.run(i, "nft", "add", "table", "inet", "cut")
        for hook in ("input", "output"):
            self.run(i, "nft", "add", "chain", "inet", "cut", hook, "{ type filter hook " + hook + " priority 0; policy drop; }")

    def mend(self, i):
        self.run(i, "nft", "delete", "table", "inet", "cut")

    def limit(self, i, rate, net=0):
        """What host i sends."""
        self.run(i, "tc", "qdisc", "replace", "dev", f"eth{net}", "root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms")

    def received(self, i, net):
        """Bytes, by the interface's own count."""
        return int(self.run(i, "cat", f"/sys/class/net/eth{net}/statistics/rx_bytes").stdout)
