"""A run over the network: the server's end and the client's.

    server:  network.serve ─► coordinator ─► session ─► run_control ─► server_run
    client:  network.join ─► worker ─► reconnecting (the line), side_keeper (the side)

The modules import gRPC, so nothing is imported here.
"""
