"""Queue `dream`: runs over scopes, pass by pass. Each pass decides on data and applies it in one transaction."""
