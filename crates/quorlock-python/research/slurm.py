"""A cluster of Slurm with this machine as its only node: its daemons, on free ports of the loopback interface, ended by their ids.

``python3 slurm.py COMMAND`` runs a command beside such a cluster.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Optional

PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "squeue")

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=100000
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> Optional[str]:
    """What this machine lacks, or ``None``."""
    lacks = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacks:
        return f"there is no {', '.join(lacks)} (Debian: apt-get install slurm-wlm munge)"
    return None if os.geteuid() == 0 else "slurmd needs to be root"


class Slurm:
    """The cluster. Its commands find it by the environment variable ``SLURM_CONF``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        (folder / "state").mkdir()
        (folder / "spool").mkdir()
        host = socket.gethostname().split(".")[0]
        controller, node = _free_ports(2)
        values = {"host": host, "controller": controller, "node": node, "user": getpass.getuser(), "folder": folder, "cores": os.cpu_count()}
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(**values))

    def start(self) -> None:
        folder = self._folder
        subprocess.run(["mungekey", "--create", "--keyfile", str(folder / "munge.key")], check=True)
        self._run(
            ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
             f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munge.log"]
        )  # fmt: skip
        _until(lambda: (folder / "munge.socket").exists(), "munged", folder)
        self._run(["slurmctld", "-D", "-c", "-f", str(self.configuration)])
        self._run(["slurmd", "-D", "-f", str(self.configuration)])
        _until(lambda: "idle" in self._nodes(), "slurmd", folder)

    def _run(self, command: list[str]) -> None:
        log = open(self._folder / f"{command[0]}.out", "wb")
        self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "SLURM_CONF": str(self.configuration)}))

    def _nodes(self) -> str:
        environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        return subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, env=environment, check=False).stdout

    def end(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _until(condition: Callable[[], bool], what: str, folder: Path) -> None:
    end = time.monotonic() + 60
    while not condition():
        logs = "".join(path.read_text(errors="replace")[-2000:] for path in folder.glob("*.[lo][ou][gt]"))
        assert time.monotonic() < end, f"{what} does not start: {logs}"
        time.sleep(0.1)


def main(command: list[str]) -> int:
    """Runs a command with a cluster that ends with it."""
    if lacks := missing():
        print(lacks, file=sys.stderr)
        return 69
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        cluster = Slurm(Path(folder))
        try:
            cluster.start()
            return subprocess.run(command, env={**os.environ, "SLURM_CONF": str(cluster.configuration)}, check=False).returncode
        finally:
            cluster.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
