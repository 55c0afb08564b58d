"""The only HTTP door, and a thin one: a route parses, makes one call, shapes the answer."""
