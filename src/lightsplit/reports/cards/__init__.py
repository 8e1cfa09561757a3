"""The privacy card of a run, for readers who do not read code.

record.json + pictures ──content──► sections ──page──► card.html
                                             └──pdf──► card.pdf
"""

from lightsplit.reports.cards.content import Card, make_card
from lightsplit.reports.cards.page import write_card_page
from lightsplit.reports.cards.pdf import write_card_pdf
from lightsplit.reports.cards.sections import Section

__all__ = ["Card", "Section", "make_card", "write_card_page", "write_card_pdf"]
