"""Declaration of a panel, a section of a page."""

from collections.abc import Callable
from typing import Any, NamedTuple

from markupsafe import Markup

from unweave.report.render import render
from unweave.report.views import NEEDS


class Panel(NamedTuple):
    """A section of a page; its template is panels/<id>.html, with the variable `view` and those of `context`."""

    id: str
    title: str  # the context may replace it by another "title"
    page: str  # "run", "comparison" (several runs), "sweep" or "study"
    context: Callable[[Any], dict[str, Any] | None] = lambda view: {}  # None: there is nothing to show
    needs: tuple[str, ...] = ()  # conditions in `NEEDS[page]` without which the panel is left out

    def render(self, view: Any, level: int = 2) -> Markup:
        """Return the section with a heading of this level; "" if a need is missing or there is nothing to show."""
        missing = [need for need in self.needs if not NEEDS[self.page][need](view)]
        context = None if missing else self.context(view)
        if context is None:
            return Markup("")
        variables = {"title": self.title, "view": view, **context}
        return render("panel.html", panel=self, heading=f"h{level}", sub=f"h{level + 1}", **variables)
