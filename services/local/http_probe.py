"""Asking a server of our own whether it is ready."""

import http.client


def responds_ok(host: str, port: int, path: str = "/readyz", within: float = 2.0) -> bool:
    """Tell whether GET answers 200 within `within` seconds. No proxy of the environment is asked."""
    connection = http.client.HTTPConnection(host, port, timeout=within)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
