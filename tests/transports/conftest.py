"""A server of gRPC's own, without anything of LightSplit's."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest


@pytest.fixture
def plain_server():
    """Return what serves one method for a while and gives the address."""
    return _serving


@contextlib.contextmanager
def _serving(path, talk, options=()):
    with ThreadPoolExecutor(4, thread_name_prefix="server") as pool:
        server = grpc.server(pool, options=options)
        handler = grpc.stream_stream_rpc_method_handler(talk)
        _, service, method = path.split("/")
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {method: handler})]
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()
