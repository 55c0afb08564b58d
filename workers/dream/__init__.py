"""Queue `dream`: runs over scopes, pass by pass. A pass decides on data and applies it in one transaction."""
