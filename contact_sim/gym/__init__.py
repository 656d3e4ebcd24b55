"""Gymnasium environments over `Simulator` and `Worlds`."""
