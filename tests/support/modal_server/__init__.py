"""A stand-in for Modal's service: it speaks the protocol of the pinned client, on this machine alone.

What it proves is that our app, our client code and modal's own client and container runtime work together, and what
they do when things go wrong. It builds no images, has no GPUs, and knows the service's own rules only from the client.
"""

from tests.support.modal_server.server import ModalServer

__all__ = ["ModalServer"]
