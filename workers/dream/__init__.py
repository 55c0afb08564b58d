"""Queue `dream`: runs over scopes, pass by pass. Each pass is applied in one transaction."""
