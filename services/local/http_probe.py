"""Ask a server on this machine whether it is ready."""

import http.client


def responds_ok(host: str, port: int, path: str = "/readyz", within: float = 2.0) -> bool:
    """Tell whether GET returns 200 within `within` seconds. Proxies set in the environment are not used."""
    connection = http.client.HTTPConnection(host, port, timeout=within)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
