from dataclasses import dataclass

def file_number(file: str) -> int: ...

@dataclass(frozen=True, order=True)
class SourcePosition:
    file: str
    offset: int
