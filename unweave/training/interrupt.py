"""SIGINT and SIGTERM during training: finish the current step, write a checkpoint, then stop."""

import shlex
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from unweave.errors import Interrupted


class SignalFlag:
    """Stores the first signal; a second one raises KeyboardInterrupt. `paths` are the runs in training."""

    def __init__(self, paths: Sequence[Path], strategy: str) -> None:
        self.paths, self.strategy = paths, strategy
        self.signum: int | None = None

    def receive(self, signum: int, frame: FrameType | None) -> None:
        if self.signum is not None:
            raise KeyboardInterrupt
        self.signum = signum

    def check(self) -> None:
        """Raise `Interrupted`, with the command that resumes the runs, if a signal was received."""
        if self.signum is not None:
            parents = {path.parent for path in self.paths}
            folder = self.paths[0] if len(self.paths) == 1 else parents.pop() if len(parents) == 1 else None
            options = [] if self.strategy == "auto" else ["--strategy", self.strategy]
            command = ["unweave", "train", "--resume", str(folder), *options] if folder else []
            raise Interrupted(self.signum, shlex.join(command))


@contextmanager
def catch_signals(paths: Sequence[Path], strategy: str) -> Iterator[SignalFlag]:
    """Catch SIGINT and SIGTERM if the runs in training have folders and the program does not handle them itself."""
    flag, before = SignalFlag(paths, strategy), {}
    if paths and threading.current_thread() is threading.main_thread():
        for signum in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(signum) in (signal.default_int_handler, signal.SIG_DFL):
                before[signum] = signal.signal(signum, flag.receive)
    try:
        yield flag
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
