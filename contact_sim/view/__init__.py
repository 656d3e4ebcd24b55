"""The viewer: a page in the browser that shows a simulation as it runs, or a recording."""
