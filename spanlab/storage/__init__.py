"""The annotation database: tables, migrations and the store."""
