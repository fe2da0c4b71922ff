"""A cursor over the tokens of one statement, and the few things every part of the DDL grammar does with it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NoReturn

from connector.ddl.syntax.ast_column import Name, SourceSpan, TableReference
from connector.ddl.syntax.tokens import Lexeme, Token
from connector.errors import Unsupported
from connector.log.transaction.layout import TableName


class Reader:
    """Reads tokens from left to right. Whatever is not expected stops: nothing is guessed.

    Args:
        tokens: of one statement, ended by END.
        schema: the session's default schema.
        modes: those of the session's `sql_mode` that change how statements are read.
        mariadb: whether a MariaDB executed it, whose clauses MySQL lacks.
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
        """The current place, for `back`."""
        return self._next

    @property
    def start(self) -> int:
        """The offset in the text of the next token."""
        return self.token.at

    @property
    def passed(self) -> int:
        """The offset in the text behind the last token."""
        return self._tokens[self._next - 1].end

    def since(self, start: int) -> SourceSpan:
        """The text from there to where the last token ended."""
        return SourceSpan(start, max(start, self.passed))

    def until_end(self, start: int) -> SourceSpan:
        """The text from there to its end."""
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
        """Pass these words or signs if they come next."""
        if self.peek(*words):
            self._next += len(words)
            return True
        return False

    def accept_any(self, *words: str) -> str:
        """Pass one of these words if it comes next, and return it, else ""."""
        return next((word for word in words if self.accept(word)), "")

    def expect(self, *words: str) -> None:
        """Pass these words or signs, or stop."""
        if not self.accept(*words):
            self.stop(f"expected {' '.join(words)}")

    def take(self) -> Token:
        """Pass the next token whatever it is."""
        token = self.token
        if token.kind is Lexeme.END:
            self.stop("unexpected end")
        if token.kind is Lexeme.UNREAD:
            self.stop("a text that is not understood")
        self._next += 1
        return token

    @property
    def at_end(self) -> bool:
        """True if nothing but a semicolon is left."""
        return self.token.kind is Lexeme.END or (self.peek(";") and self._tokens[self._next + 1].kind is Lexeme.END)

    def expect_end(self) -> None:
        """Stop if anything is left."""
        if not self.at_end:
            self.stop("expected the end")

    def name(self) -> str:
        """Pass a name, quoted or not."""
        if self.token.kind not in (Lexeme.WORD, Lexeme.NAME):
            self.stop("expected a name")
        return self._meant(self.take())

    def column(self) -> Name:
        """Pass a column's name."""
        start, text = self.start, self.name()
        return Name(self.since(start), text)

    def table(self) -> TableReference:
        """Pass a table's name, resolved with the default schema. Nothing that may be a part of it is left behind it."""
        start, schema, name = self.start, self._schema, self.name()
        if self.accept("."):
            schema, name = name, self.name()
        if not schema:
            self.stop(f"table {name} without a default schema")
        span = self.since(start)
        if not (self.at_end or self.token.kind is Lexeme.WORD or any(map(self.peek, "(),"))):
            self.stop("what cannot stand behind a table's name")
        return TableReference(span, TableName(schema, name))

    def string(self) -> str:
        """Pass a string literal; adjacent ones are one."""
        if self.token.kind is not Lexeme.STRING:
            self.stop("expected a string")
        text = self._meant(self.take())
        while self.token.kind is Lexeme.STRING:
            text += self._meant(self.take())
        return text

    def numbers(self) -> tuple[int, ...]:
        """Pass `(n[, n …])` if it comes next; else ()."""
        if not self.accept("("):
            return ()
        found = [self._integer()]
        while self.accept(","):
            found.append(self._integer())
        self.expect(")")
        return tuple(found)

    def strings(self) -> tuple[str, ...]:
        """Pass `('a'[, 'b' …])`."""
        self.expect("(")
        found = [self.string()]
        while self.accept(","):
            found.append(self.string())
        self.expect(")")
        return tuple(found)

    def skip_parentheses(self) -> None:
        """Pass a balanced `( … )`."""
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            if token.kind is Lexeme.SIGN:
                depth += (token.text == "(") - (token.text == ")")

    def skip_clause(self) -> None:
        """Pass everything up to a comma or closing parenthesis of this level, or the end."""
        while not (self.at_end or self.peek(",") or self.peek(")")):
            if self.peek("("):
                self.skip_parentheses()
            else:
                self.take()

    def skip_all(self) -> None:
        """Pass everything up to the end."""
        while not self.at_end:
            self.take()

    def _meant(self, token: Token) -> str:
        """A token's text, of bytes that mean something: U+DC00 … U+DCFF stand for others."""
        if any("\udc00" <= character <= "\udcff" for character in token.text):
            self.stop("bytes that mean nothing in their character set")
        return token.text

    def _integer(self) -> int:
        if self.token.kind is not Lexeme.NUMBER or not self.token.text.isdigit():
            self.stop("expected a number")
        return int(self.take().text)
