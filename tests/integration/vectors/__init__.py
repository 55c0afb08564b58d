"""One suite for both servers of the protocol: the local process and the real server."""
