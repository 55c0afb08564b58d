"""Queue `documents`: parse_document → publish_document → done. Makes the text of files searchable."""
