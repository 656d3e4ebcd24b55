"""Messages of labelled numbers."""


def labelled(message):
    """Return the numbers of a message by label."""
    labels = [dim.label for dim in message.layout.dim]
    assert len(labels) == len(set(labels)) == len(message.data)
    return dict(zip(labels, message.data, strict=True))
