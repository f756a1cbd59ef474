"""Tables, over the wire of Tokyo Tyrant and beside the other protocols."""
