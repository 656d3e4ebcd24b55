"""The panel of the page: switches, sliders and plots of any Session."""

from __future__ import annotations

import viser

from contact_sim.view.session import Session


class Panel:
    """The panel of one page.

    Args:
        server: of the page.
        session: what its switches act on.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._server, self._session = server, session

    def update(self) -> None:
        """Show the newest numbers and settings; called by the thread that draws."""
