"""Tables, over Tokyo Tyrant's protocol and the other protocols."""
