"""Skills: how an agent does something, in Markdown, with the files that belong to it."""
