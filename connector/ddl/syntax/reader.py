"""A cursor over the tokens of one statement, for the DDL parser."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NoReturn

from connector.ddl.syntax.ast_column import Name, SourceSpan, TableReference
from connector.ddl.syntax.tokens import Lexeme, Token
from connector.errors import Unsupported
from connector.log.transaction.layout import TableName


class TokenReader:
    """Reads tokens from left to right; stops at an unexpected one.

    Args:
        tokens: the tokens of one statement; the last is END.
        schema: the session's default schema.
        modes: the modes of the session's `sql_mode` that change the grammar.
        mariadb: true if a MariaDB executed the statement, which has clauses that MySQL lacks.
    """

    def __init__(
        self, tokens: Sequence[Token], schema: str, modes: Set[str] = frozenset(), *, mariadb: bool = False
    ) -> None:
        self._tokens = tokens
        self._next = 0
        self._schema = schema
        self.modes = modes
        self.mariadb = mariadb

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._next]

    @property
    def mark(self) -> int:
        """The current position, for `back`."""
        return self._next

    @property
    def start(self) -> int:
        """The offset in the text of the next token."""
        return self.token.at

    @property
    def passed(self) -> int:
        """The offset in the text after the last token."""
        return self._tokens[self._next - 1].end

    def since(self, start: int) -> SourceSpan:
        """Return the span from an offset to the end of the last token."""
        return SourceSpan(start, max(start, self.passed))

    def until_end(self, start: int) -> SourceSpan:
        """Return the span from an offset to the end of the text."""
        return SourceSpan(start, self._tokens[-1].at)

    def back(self, mark: int) -> None:
        """Go back to a mark."""
        self._next = mark

    def stop(self, what: str) -> NoReturn:
        """Raise `Unsupported`: the statement is not understood here."""
        raise Unsupported(f"DDL not understood: {what} at {self.token.text!r}")

    def peek(self, *words: str) -> bool:
        """True if these words or signs come next."""
        for ahead, word in enumerate(words):
            token = self._tokens[min(self._next + ahead, len(self._tokens) - 1)]
            if token.kind not in (Lexeme.WORD, Lexeme.SIGN) or token.text.upper() != word:
                return False
        return True

    def accept(self, *words: str) -> bool:
        """Consume these words or signs if they come next; return True if they did."""
        if self.peek(*words):
            self._next += len(words)
            return True
        return False

    def accept_any(self, *words: str) -> str:
        """Consume one of these words if it comes next; return it, else ""."""
        return next((word for word in words if self.accept(word)), "")

    def expect(self, *words: str) -> None:
        """Consume these words or signs, or stop."""
        if not self.accept(*words):
            self.stop(f"expected {' '.join(words)}")

    def take(self) -> Token:
        """Consume and return the next token."""
        token = self.token
        if token.kind is Lexeme.END:
            self.stop("unexpected end")
        if token.kind is Lexeme.UNREAD:
            self.stop("text that is not understood")
        self._next += 1
        return token

    @property
    def at_end(self) -> bool:
        """True if at most a semicolon is left."""
        return self.token.kind is Lexeme.END or (self.peek(";") and self._tokens[self._next + 1].kind is Lexeme.END)

    def expect_end(self) -> None:
        """Stop unless the statement has ended."""
        if not self.at_end:
            self.stop("expected the end")

    def name(self) -> str:
        """Consume a name, quoted or not."""
        if self.token.kind not in (Lexeme.WORD, Lexeme.NAME):
            self.stop("expected a name")
        return self._meant(self.take())

    def column(self) -> Name:
        """Consume a column's name."""
        start, text = self.start, self.name()
        return Name(self.since(start), text)

    def table(self) -> TableReference:
        """Consume a table's name, and resolve it with the default schema; stop at an unexpected token after it."""
        start, schema, name = self.start, self._schema, self.name()
        if self.accept("."):
            schema, name = name, self.name()
        if not schema:
            self.stop(f"table {name} without a default schema")
        span = self.since(start)
        if not (self.at_end or self.token.kind is Lexeme.WORD or any(map(self.peek, "(),"))):
            self.stop("unexpected text after a table's name")
        return TableReference(span, TableName(schema, name))

    def string(self) -> str:
        """Consume a string literal; adjacent strings are joined."""
        if self.token.kind is not Lexeme.STRING:
            self.stop("expected a string")
        text = self._meant(self.take())
        while self.token.kind is Lexeme.STRING:
            text += self._meant(self.take())
        return text

    def numbers(self) -> tuple[int, ...]:
        """Consume `(n[, n …])` if it comes next; else return ()."""
        if not self.accept("("):
            return ()
        found = [self._integer()]
        while self.accept(","):
            found.append(self._integer())
        self.expect(")")
        return tuple(found)

    def strings(self) -> tuple[str, ...]:
        """Consume `('a'[, 'b' …])`."""
        self.expect("(")
        found = [self.string()]
        while self.accept(","):
            found.append(self.string())
        self.expect(")")
        return tuple(found)

    def skip_parentheses(self) -> None:
        """Skip a balanced `( … )`."""
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            if token.kind is Lexeme.SIGN:
                depth += (token.text == "(") - (token.text == ")")

    def skip_clause(self) -> None:
        """Skip to a comma or closing parenthesis of this level, or the end."""
        while not (self.at_end or self.peek(",") or self.peek(")")):
            if self.peek("("):
                self.skip_parentheses()
            else:
                self.take()

    def skip_all(self) -> None:
        """Skip to the end."""
        while not self.at_end:
            self.take()

    def _meant(self, token: Token) -> str:
        """Return a token's text; stop at bytes that are invalid in their character set (U+DC00 … U+DCFF)."""
        if any("\udc00" <= character <= "\udcff" for character in token.text):
            self.stop("bytes that are invalid in their character set")
        return token.text

    def _integer(self) -> int:
        if self.token.kind is not Lexeme.NUMBER or not self.token.text.isdigit():
            self.stop("expected a number")
        return int(self.take().text)
