"""Stand-ins for services that tests cannot use: real servers that can be programmed to fail."""
