"""The files of documents as they were uploaded. Small ones lie in Postgres, large ones in S3."""
