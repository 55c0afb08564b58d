"""What stands in for a service that no test can reach: real servers, programmable to fail."""
