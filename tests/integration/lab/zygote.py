"""A process that has everything imported and forks a command in milliseconds.

stdin:   {"argv": ["lightsplit", …], "log": path, "cwd": path}   start a command
         {"argv": ["a/script.py", …], …}                         start a script
         null                            kill whatever still runs, and end
stdout:  {"pid": 123}                    it runs
         {"pid": 123, "code": -9, "peak_bytes": 456}    it is over

A child is a process of its own, with the command line's own entry; only the seconds
that importing torch takes are saved. The end of stdin does as null does; it may come
late, because a process that the tests forked can hold the other end of the pipe.
"""

import json
import os
import runpy
import select
import signal
import sys


def main():
    import lightsplit.cli.app  # noqa: F401  once, before the forks
    from lightsplit.experiments import build, from_settings

    build(from_settings({"train_limit": 20, "clients": 2, "projection": "dct"}))
    running = set()
    say({"pid": os.getpid()})
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], 0.02)
        if ready:
            order = json.loads(sys.stdin.readline() or "null")
            if order is None:
                break
            running.add(start(order))
        reap(running)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)  # libraries that were only imported have nothing to clean up


def start(order):
    pid = os.fork()
    if pid:
        say({"pid": pid})
        return pid
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(number, target)
    sys.argv = order["argv"]
    os.chdir(order["cwd"])
    return run()


def run():
    from lightsplit.cli.app import main as command

    code = 0
    try:
        if sys.argv[0] == "lightsplit":
            command()
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001  the log shows it
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def reap(running):
    while running:
        pid, status, used = os.wait4(-1, os.WNOHANG)
        if not pid:
            return
        running.discard(pid)
        code, peak = os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024
        say({"pid": pid, "code": code, "peak_bytes": peak})


def say(fact):
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
