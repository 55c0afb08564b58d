"""What all queues share: claiming jobs, tracing, error privacy, liveness and Celery beat."""
