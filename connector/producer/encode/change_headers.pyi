from connector.log.ids import Action
from connector.log.transaction.layout import TableLayout

class ChangeHeaders:
    def __call__(self, layout: TableLayout, action: Action, before: bytes = b"", after: bytes = b"") -> bytes: ...
