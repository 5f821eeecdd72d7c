"""A backend by its name, for commands that take `local`, `modal` or `http` beside the flags of every command."""

import argparse


def choose_backend(parser: argparse.ArgumentParser, options: argparse.Namespace, flag: str, name: str) -> None:
    """The flags as `name` asks for them; the parser's usage error where they name another backend, or lack a server."""
    named = {"modal": options.modal, "http": bool(options.encoder_url)}
    if others := [other for other, given in named.items() if given and other != name]:
        parser.error(f"{flag} {name} does not go with {'--modal' if others == ['modal'] else '--encoder-url'}")
    if name == "http" and not options.encoder_url:
        parser.error(f"{flag} http needs --encoder-url URL")
    options.modal = name == "modal"
