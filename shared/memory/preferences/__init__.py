"""Preferences of users: rules that set a slot or change a template where their condition is met."""
