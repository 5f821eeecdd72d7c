"""Git as tests run it: a person's name, and no monitor of the repository's."""

import subprocess

_SETTINGS = ("protocol.file.allow=always", "core.fsmonitor=false", "user.name=a", "user.email=a@example.org")


def git(folder, *arguments):
    """What git prints of a folder."""
    command = ["git", *(word for setting in _SETTINGS for word in ("-c", setting)), "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(folder):
    """The commit of all that lies in a folder."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a step", "--allow-empty")
    return git(folder, "rev-parse", "HEAD")
