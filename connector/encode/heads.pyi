from connector.thl.layout import TableLayout
from connector.thl.words import Action

class Heads:
    def __call__(self, layout: TableLayout, action: Action, before: bytes = b"", after: bytes = b"") -> bytes: ...
