"""What each pass makes of a model's reply: parsing and rules as pure functions, without I/O."""
