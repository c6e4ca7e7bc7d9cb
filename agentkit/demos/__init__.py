"""The context lab without its widgets: plans, their runs, and every step told in words."""
