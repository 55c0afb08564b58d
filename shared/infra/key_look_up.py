"""Look rows up by many keys, each by the index of the keys, whatever Postgres knows about the table.

With other conditions beside the keys, or in a join that it may turn round, Postgres may read all rows of a
tenant, or even all of them once for each key, while it has no statistics about them: 200 of 100 000 turns
then take ten seconds, and not ten milliseconds. A lateral subquery is run for each key. `OFFSET 0` keeps it
one, and the other conditions are applied to what was found.
"""

from sqlalchemy import ARRAY, Column, Subquery, Table, bindparam, func, literal_column, select, true


def look_up(table: Table, **columns: Column[str] | Column[int]) -> Subquery:
    """Return the rows of a tenant that have one of the keys, of which none is named twice.

    The columns of the keys have an index. The parameters are `tenant`, and for each name of a column an array
    with its value in every key.
    """
    arrays = [bindparam(name, type_=ARRAY(column.type)) for name, column in columns.items()]
    keys = func.unnest(*arrays).table_valued(*columns).render_derived("wanted")
    is_wanted = (column == keys.c[name] for name, column in columns.items())
    is_of_tenant = table.c.tenant == bindparam("tenant")
    row = select(table).where(is_of_tenant, *is_wanted).offset(literal_column("0")).lateral("row")
    return select(row).select_from(keys.join(row, true())).subquery("found")
