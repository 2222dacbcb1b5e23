"""What every table is made with."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table
from sqlalchemy.schema import SchemaItem

metadata = MetaData()
ID = BigInteger().with_variant(Integer, "sqlite")


def table(name: str, *columns: SchemaItem) -> Table:
    return Table(name, metadata, *columns)


def pk() -> Column[int]:
    return Column("id", ID, primary_key=True, autoincrement=True)
