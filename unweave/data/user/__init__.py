"""Your own data: folders, tables, arrays, items."""
