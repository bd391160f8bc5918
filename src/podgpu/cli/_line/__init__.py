"""What a user types: commands, arguments and options."""
