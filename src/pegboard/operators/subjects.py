"""The subjects of operators that keep something between two questions; all others are functions of ``Services``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pegboard.board.services import Services
from pegboard.operators.approvals import OperatorApprovals
from pegboard.operators.bill import BillReader
from pegboard.operators.counting import CatalogCounting
from pegboard.operators.known_problems import KnownProblems
from pegboard.operators.logins import OperatorLogins
from pegboard.operators.matrix import MatrixReader
from pegboard.operators.pins import OperatorPins
from pegboard.operators.search import OperatorSearch
from pegboard.operators.switch_preview import SwitchPreviews
from pegboard.operators.switches import SwitchPanels
from pegboard.operators.usage import UsageReader


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSubjects:
    """One object for each of these subjects, all over one board."""

    approvals: OperatorApprovals
    bills: BillReader
    counting: CatalogCounting
    logins: OperatorLogins
    matrix: MatrixReader
    panels: SwitchPanels
    pins: OperatorPins
    previews: SwitchPreviews
    problems: KnownProblems
    search: OperatorSearch
    usage: UsageReader

    async def aclose(self) -> None:
        """End what they compute in the background."""
        for subject in (self.usage, self.bills, self.problems):
            await subject.aclose()
        await self.aclose_catalog()

    async def aclose_catalog(self) -> None:
        """End what those about the catalog compute in the background."""
        for subject in (self.search, self.counting):
            await subject.aclose()

    def with_services(self, services: Services, counted: Callable[[], object]) -> OperatorSubjects:
        """Return the same subjects, those about the catalog over other services of the board."""
        counting = CatalogCounting(services, counted)
        return replace(
            self,
            counting=counting,
            matrix=MatrixReader(services),
            panels=SwitchPanels(services, counting),
            previews=SwitchPreviews(services),
            search=OperatorSearch(services),
        )


def make_subjects(services: Services, counted: Callable[[], object] = lambda: None) -> OperatorSubjects:
    """Return the subjects over a board; ``counted`` is called when a figure is ready that an answer went without."""
    counting = CatalogCounting(services, counted)
    return OperatorSubjects(
        approvals=OperatorApprovals(services),
        bills=BillReader(services),
        counting=counting,
        logins=OperatorLogins(services),
        matrix=MatrixReader(services),
        panels=SwitchPanels(services, counting),
        pins=OperatorPins(services),
        previews=SwitchPreviews(services),
        problems=KnownProblems(services, counted),
        search=OperatorSearch(services),
        usage=UsageReader(services),
    )
