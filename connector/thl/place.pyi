from dataclasses import dataclass

@dataclass(frozen=True, order=True)
class SourcePosition:
    file: str
    offset: int
