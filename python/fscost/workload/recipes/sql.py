"""`insert.sql` and `update.sql`: transactions for sqlite3."""

from pathlib import Path

from fscost.workload.recipes.request import Request
from fscost.workload.recipes.text import text

_ROWS = 4  # per transaction
_ROW_BYTES = 200


def make(folder: Path, request: Request) -> None:
    """Make `transactions` of each kind, in the requested journal mode. Every commit is durable
    (synchronous=FULL, sqlite's default)."""
    rng = request.rng("sql")
    transactions = request.number("transactions")
    pragmas = f"PRAGMA journal_mode={request.values['journal']};\nPRAGMA synchronous=FULL;\n"
    with (folder / "insert.sql").open("w") as file:
        file.write(
            pragmas
            + "CREATE TABLE item (id INTEGER PRIMARY KEY, key INTEGER, body TEXT);\nCREATE INDEX"
            " item_key ON item (key);\n"
        )
        for i in range(transactions):
            rows = ",".join(
                f"({i * _ROWS + row},{rng.randrange(1 << 32)},'{text(rng, _ROW_BYTES).decode()}')"
                for row in range(_ROWS)
            )
            file.write(f"BEGIN; INSERT INTO item VALUES {rows}; COMMIT;\n")
    with (folder / "update.sql").open("w") as file:
        file.write(pragmas)
        for _ in range(transactions):
            updates = " ".join(
                f"UPDATE item SET key={rng.randrange(1 << 32)} WHERE"
                f" id={rng.randrange(transactions * _ROWS)};"
                for _ in range(_ROWS)
            )
            file.write(f"BEGIN; {updates} COMMIT;\n")
